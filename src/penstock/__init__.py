"""Enterprise Integration Patterns as tables, on Spark, from Python."""

from penstock.endpoints.files import Files, Parquet, Table
from penstock.endpoints.lookup import lookup_table
from penstock.endpoints.memory import Memory
from penstock.endpoints.simple import Console, Frame, Rate, Void
from penstock.expr.columns import body, call, default, function, header, item, lookup, when
from penstock.expr.jsonpath import jsonpath
from penstock.formats import Csv, Json, Text, Xml
from penstock.message import Message
from penstock.patterns.join import join
from penstock.route.app import App
from penstock.route.route import Route

__version__ = "0.1.0"

__all__ = [
    "App", "Console", "Csv", "Files", "Frame", "Json", "Memory", "Message", "Parquet", "Rate", "Route", "Table",
    "Text", "Void", "Xml", "body", "call", "default", "function", "header", "item", "join", "jsonpath", "lookup",
    "lookup_table", "when",
]  # fmt: skip

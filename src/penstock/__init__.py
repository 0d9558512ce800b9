"""Enterprise Integration Patterns as tables, on Spark, from Python."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.endpoints.files import Files, Parquet, Table
    from penstock.endpoints.kafka import KafkaTopic
    from penstock.endpoints.log import Log
    from penstock.endpoints.lookup import lookup_table
    from penstock.endpoints.memory import Memory
    from penstock.endpoints.postgres import Postgres
    from penstock.endpoints.simple import Console, Frame, Rate, Void
    from penstock.expr.columns import body, call, default, function, header, item, lookup, meta, now, when
    from penstock.expr.jsonpath import jsonpath
    from penstock.expr.xpath import xpath, xpath_number, xpath_string, xpath_strings
    from penstock.formats import Csv, Json, Text, Xml
    from penstock.message import Message
    from penstock.patterns.join import join
    from penstock.patterns.strategy import (
        collect,
        combine,
        count_of,
        first_of,
        fold,
        last_of,
        latest,
        max_of,
        mean_of,
        min_of,
        sum_of,
        union,
    )  # fmt: skip
    from penstock.route.app import App
    from penstock.route.composed import composed_processor, scatter_gather
    from penstock.route.route import Route

__version__ = "0.1.0"

__all__ = [
    "App", "Console", "Csv", "Files", "Frame", "Json", "KafkaTopic", "Log", "Memory", "Message", "Parquet", "Postgres",
    "Rate", "Route", "Table", "Text", "Void", "Xml", "body", "call", "collect", "combine", "composed_processor",
    "count_of", "default", "first_of", "fold", "function", "header", "item", "join", "jsonpath", "last_of", "latest",
    "lookup", "lookup_table", "max_of", "mean_of", "meta", "min_of", "now", "scatter_gather", "sum_of", "union", "when",
    "xpath", "xpath_number", "xpath_string", "xpath_strings",
]  # fmt: skip

# Loaded when first used: a worker that decodes messages needs none of what routes are written with.
_HOMES = {
    "endpoints.files": ("Files", "Parquet", "Table"),
    "endpoints.kafka": ("KafkaTopic",),
    "endpoints.log": ("Log",),
    "endpoints.lookup": ("lookup_table",),
    "endpoints.memory": ("Memory",),
    "endpoints.postgres": ("Postgres",),
    "endpoints.simple": ("Console", "Frame", "Rate", "Void"),
    "expr.columns": ("body", "call", "default", "function", "header", "item", "lookup", "meta", "now", "when"),
    "expr.jsonpath": ("jsonpath",),
    "expr.xpath": ("xpath", "xpath_number", "xpath_string", "xpath_strings"),
    "formats": ("Csv", "Json", "Text", "Xml"),
    "message": ("Message",),
    "patterns.join": ("join",),
    "patterns.strategy": (
        "collect",
        "combine",
        "count_of",
        "first_of",
        "fold",
        "last_of",
        "latest",
        "max_of",
        "mean_of",
        "min_of",
        "sum_of",
        "union",
    ),
    "route.app": ("App",),
    "route.composed": ("composed_processor", "scatter_gather"),
    "route.route": ("Route",),
}
_HOME_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value

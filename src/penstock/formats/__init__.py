"""Formats: bytes of a body to fields and back, for JSON, XML, CSV and text."""

from __future__ import annotations

from penstock.formats.base import Format, Malformed
from penstock.formats.csv import Csv
from penstock.formats.infer import infer, infer_csv
from penstock.formats.json import Json
from penstock.formats.text import Text
from penstock.formats.xml import Xml

__all__ = ["Csv", "Format", "Json", "Malformed", "Text", "Xml", "infer", "infer_csv"]

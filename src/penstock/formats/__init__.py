"""Formats: bytes of a body to fields and back, for JSON, XML, CSV and text."""

from __future__ import annotations

from penstock.errors import BadSchema, did_you_mean
from penstock.formats.base import Format, Malformed
from penstock.formats.csv import Csv
from penstock.formats.infer import infer, infer_csv
from penstock.formats.json import Json
from penstock.formats.text import Text
from penstock.formats.xml import Xml
from penstock.schema import SchemaLike

__all__ = ["Csv", "Format", "Json", "Malformed", "Text", "Xml", "by_name", "infer", "infer_csv"]


def by_name(name: str, schema: SchemaLike | None = None) -> Format:
    """The format that a route file or a command line names, with its defaults."""
    match name:
        case "text":
            return Text()
        case "xml":
            return Xml(schema)
        case "json" | "csv" if schema is None:
            raise BadSchema(f"format {name!r} needs a schema", fix='give it like "id BIGINT, name STRING"')
        case "json":
            return Json(schema)  # type: ignore[arg-type]
        case "csv":
            return Csv(schema)  # type: ignore[arg-type]
    raise BadSchema(f"unknown format {name!r}", fix=did_you_mean(name, ("json", "xml", "csv", "text")))

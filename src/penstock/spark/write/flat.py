"""Columns for PostgreSQL: nested values become JSON text, and text loses what PostgreSQL cannot hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.json import written
from penstock.schema import STRING, VARIANT, Array, Map, Struct, Type

REPLACEMENT = "\ufffd"
_KNOWN: dict[str, Type] = {"_headers": Map(STRING), "headers": Map(STRING), "attachments": Map(STRING)}
# A pair of surrogates, any other character by its number, or any other escape.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|.)")


def flat(table: pa.Table, fields: Mapping[str, Type]) -> pa.Table:
    """The table with JSON text in place of structs, arrays, maps and variants."""
    for number, column in enumerate(table.schema):
        kind = fields.get(column.name) or _KNOWN.get(column.name, STRING)
        values = table.column(number)
        if isinstance(kind, (Array, Map, Struct)):
            texts = [_json_text(value, kind) for value in values.to_pylist()]
            table = table.set_column(number, column.name, pa.array(texts, pa.string()))
        elif kind == VARIANT:
            texts = [None if text is None else storable(text) for text in values.to_pylist()]
            table = table.set_column(number, column.name, pa.array(texts, pa.string()))
        elif pa.types.is_string(column.type):
            table = table.set_column(number, column.name, pc.replace_substring(values, "\0", REPLACEMENT))
    return table


def _json_text(value: Any, kind: Type) -> str | None:
    return None if value is None else storable(msgspec.json.encode(_plain(value, kind)).decode())


def _plain(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    match kind:
        case Struct(fields):
            return {name: _plain(value[name], inner) for name, inner in fields}
        case Array(element):
            return [_plain(item, element) for item in value]
        case Map(inner):
            return {name: _plain(item, inner) for name, item in value}
    return msgspec.Raw(value.encode()) if kind == VARIANT else written(value, kind)


def storable(text: str) -> str:
    """JSON without the two things that PostgreSQL refuses: the character 0, and half a pair of surrogates."""

    def replaced(found: re.Match[str]) -> str:
        escape = found.group().lower()
        alone = len(escape) == 6 and escape[2] == "d" and escape[3] in "89abcdef"
        return r"\ufffd" if escape == r"\u0000" or alone else found.group()

    return _ESCAPE.sub(replaced, text) if "\\u" in text else text

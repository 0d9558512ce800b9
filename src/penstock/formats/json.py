"""JSON bodies: what they mean, one message at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from penstock import values
from penstock.formats import jsonbatch, jsonvariant
from penstock.formats.base import (
    Decoded,
    DecodedBatch,
    Malformed,
    WrongValue,
    XPathColumns,
    malformed_body,
    read_text,
    refuse_xpaths,
)
from penstock.formats.jsontext import Node, NotJson, parse
from penstock.formats.scalars import in_range, is_missing
from penstock.schema import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    VARIANT,
    Array,
    DecimalType,
    Map,
    Scalar,
    SchemaLike,
    Struct,
    Type,
)
from penstock.schema import schema as read_schema


@dataclass(frozen=True, slots=True, init=False)
class Json:
    """A body that is one JSON object.

    Null is missing. Of keys that occur twice the last one counts, but each must have the declared type. A
    STRING field also takes any other value, as the JSON text that was written.
    """

    schema: Struct

    def __init__(self, schema: SchemaLike) -> None:
        object.__setattr__(self, "schema", read_schema(schema))

    @property
    def name(self) -> str:
        return "json"

    def decode(self, raw: bytes, wanted: Struct, *, xpaths: XPathColumns = ()) -> Decoded:
        refuse_xpaths(self.name, xpaths)
        return decode(raw, wanted)

    def decode_batch(self, bodies: pa.Array, wanted: Struct, *, xpaths: XPathColumns = ()) -> DecodedBatch:
        refuse_xpaths(self.name, xpaths)
        return jsonbatch.decode_batch(bodies, wanted, decode)

    def encode(self, fields: Mapping[str, Any]) -> bytes:
        return msgspec.json.encode(written(fields, self.schema))


def decode(raw: bytes, wanted: Struct) -> Decoded:
    text = read_text(raw)
    if isinstance(text, Malformed):
        return text
    if text.startswith("\ufeff"):
        return malformed_body("begins with a byte order mark")
    try:
        root = parse(text)
        if root.kind != "object":
            return malformed_body(f"not a JSON object but {root.kind}")
        return _struct(root, wanted, "")
    except NotJson as error:
        at = len(text[: error.at].encode("utf-8"))
        return malformed_body(f"not JSON: {error.why} at byte {at}")
    except WrongValue as error:
        return error.malformed


def _struct(node: Node, kind: Struct, path: str) -> dict[str, Any]:
    kinds = dict(kind.fields)
    found: dict[str, Any] = dict.fromkeys(kinds)
    for name, inner in node.members:
        if name in kinds:
            found[name] = _value(inner, kinds[name], f"{path}.{name}" if path else name)
    return found


def _value(node: Node, kind: Type, path: str) -> Any:
    if node.kind == "null":
        return None
    match kind, node.kind:
        case Struct(), "object":
            return _struct(node, kind, path)
        case Map(value), "object":
            return {name: _value(inner, value, f"{path}.{name}") for name, inner in node.members}
        case Array(element), "array":
            return [_value(inner, element, f"{path}[{index}]") for index, (_, inner) in enumerate(node.members)]
        case Scalar(), _:
            found = _scalar(node, kind, path)
            if found is not None:
                return found
    raise WrongValue(path, node.text, kind)


def _scalar(node: Node, kind: Scalar, path: str) -> Any:
    if kind == STRING:
        return node.string if node.kind == "string" else node.text
    if kind == VARIANT:
        return jsonvariant.read(node.text, path)
    if kind == BOOLEAN:
        return {"true": True, "false": False}.get(node.kind)
    if kind not in (INTEGER, DOUBLE):
        return _from_text(node, kind)
    if node.kind != "number":
        return None
    return _integer(node.text) if kind == INTEGER else _double(node.text)


def _from_text(node: Node, kind: Scalar) -> Any:
    """Dates, instants and bytes are strings; exact numbers are numbers, or strings for those who fear doubles."""
    if node.kind == "string":
        return values.read(node.string, kind)
    return values.read(node.text, kind) if node.kind == "number" and isinstance(kind, DecimalType) else None


def _integer(text: str) -> int | None:
    return None if any(mark in text for mark in ".eE") else in_range(text)


def _double(text: str) -> float | None:
    value = float(text)
    if value == 0 and not any(mark in text for mark in ".eE"):
        return 0.0  # the integer -0 is 0
    return value if math.isfinite(value) else None


def written(value: Any, kind: Type | None) -> Any:
    """What msgspec has to write: fields that are missing are left out, nulls of arrays, maps and VARIANTs stay."""
    match kind:
        case Struct() if isinstance(value, Mapping):
            kept = ((name, written(inner, kind.get(name))) for name, inner in value.items())
            return {name: inner for name, inner in kept if inner is not None}
        case Array(element) if value is not None:
            return [written(inner, element) for inner in value]
        case Map(inner_kind) if value is not None:
            return {name: written(inner, inner_kind) for name, inner in value.items()}
    if kind == VARIANT:
        return None if is_missing(value) else value
    if isinstance(value, Decimal):
        return msgspec.Raw(values.text_of(value).encode())
    if isinstance(value, datetime):
        return values.text_of(value)
    return None if is_missing(value) else value

"""Schema types as Arrow types, the same as Spark's `to_arrow_schema` makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.formats.base import Decoded, DecodedBatch, Malformed, XPathColumns, malformed_body
from penstock.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    VARIANT,
    Array,
    DecimalType,
    Map,
    Scalar,
    Struct,
    Type,
)

_SCALARS: dict[Scalar, pa.DataType] = {
    STRING: pa.string(),
    INTEGER: pa.int64(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    BINARY: pa.binary(),
    VARIANT: pa.string(),
}


def arrow_type(kind: Type) -> pa.DataType:
    """Everything is nullable but the keys of a map. VARIANT is JSON text."""
    match kind:
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case Scalar():
            return _SCALARS[kind]
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(value):
            return pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", arrow_type(value)))
        case Struct(fields):
            return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in fields])


def with_xpaths(wanted: Struct, xpaths: XPathColumns) -> Struct:
    """The wanted fields, then `xpath_0`, `xpath_1`, ..."""
    return Struct(wanted.fields + tuple((f"xpath_{index}", column[1]) for index, column in enumerate(xpaths)))


def no_body() -> Malformed:
    return malformed_body("the message has no body")


def one_by_one(bodies: pa.Array, decode: Callable[[bytes], Decoded], columns: Struct) -> DecodedBatch:
    """The batch form of a format that has no faster one."""
    raws = bodies.cast(pa.binary()).to_pylist()
    rows = [no_body() if raw is None else decode(raw) for raw in raws]
    errors = [(index, row) for index, row in enumerate(rows) if isinstance(row, Malformed)]
    values: list[dict[str, Any] | None] = [None if isinstance(row, Malformed) else row for row in rows]
    return pa.array(values, arrow_type(columns)), errors

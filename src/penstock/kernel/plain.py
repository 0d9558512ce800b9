"""Arrow columns as the Python values that the reference and users' functions see, and back."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from penstock.formats import jsonvariant
from penstock.formats.arrow import arrow_type
from penstock.formats.scalars import is_missing
from penstock.schema import DOUBLE, INTEGER, STRING, VARIANT, Array, Map, Struct, Type, has_variant


def to_python(column: pa.Array, kind: Type) -> list[Any]:
    """A column as Python values: structs and maps as dicts, a VARIANT as what its JSON text says."""
    if kind in (INTEGER, DOUBLE) and not column.null_count:
        numbers: list[Any] = column.to_numpy().tolist()
        return numbers
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    if isinstance(kind, Struct) and kind.names != tuple(field.name for field in column.type):
        values = [None if value is None else {name: value.get(name) for name in kind.names} for value in values]
    return [_read(value, kind) for value in values] if has_variant(kind) else values


def to_arrow(values: list[Any], kind: Type) -> pa.Array:
    return pa.array([as_stored(value, kind) for value in values] if has_variant(kind) else values, arrow_type(kind))


def _read(value: Any, kind: Type) -> Any:
    match kind:
        case _ if value is None:
            return None
        case Struct(fields):
            return {name: _read(value[name], inner) for name, inner in fields if name in value}
        case Array(element):
            return [_read(inner, element) for inner in value]
        case Map(inner_kind):
            return {name: _read(inner, inner_kind) for name, inner in value.items()}
    return jsonvariant.read(value, "") if kind == VARIANT else value


def as_stored(value: Any, kind: Type) -> Any:
    """A Python value as Arrow takes it for its type; what cannot be stored is an error."""
    match kind:
        case _ if value is None:
            return None
        case Struct(fields):
            return {name: as_stored(value.get(name), inner) for name, inner in fields}
        case Array(element):
            return [as_stored(inner, element) for inner in value]
        case Map(inner_kind):
            return {as_stored(name, STRING): as_stored(inner, inner_kind) for name, inner in value.items()}
    if kind == VARIANT:
        return None if is_missing(value) else msgspec.json.encode(value).decode()
    if isinstance(value, str):
        value.encode()
    return value

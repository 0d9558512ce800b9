"""Write structs as JSON objects, however deep, column by column."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats import jsonvariant
from penstock.formats.jsonobjects import WRITTEN, joined, scalar_texts, write_objects
from penstock.schema import VARIANT, Array, Map, Struct, Type

Texts: TypeAlias = pa.Array
"""A JSON text for every value, null where it is missing."""


def write_bodies(bodies: pa.StructArray, kind: Struct) -> pa.Array:
    """A JSON object for every body, with the bytes that the reference writes."""
    return _objects(bodies, kind).cast(pa.binary())


def _objects(bodies: pa.StructArray, kind: Struct) -> Texts:
    if not kind.fields:
        return pa.repeat(pa.scalar("{}"), len(bodies))
    columns = dict(zip(kind.names, bodies.flatten(), strict=True))
    if all(inner in WRITTEN for _, inner in kind.fields):
        return write_objects(columns).cast(pa.string())
    members = [
        joined(f",{msgspec.json.encode(name).decode()}:", _texts(columns[name], inner)).fill_null("")
        for name, inner in kind.fields
    ]
    return joined("{", pc.utf8_slice_codeunits(joined(*members), 1), "}")


def _texts(column: pa.Array, kind: Type) -> Texts:
    match kind:
        case Struct():
            return _where(column, _objects(column, kind))
        case Array(element):
            return _listed(column, _texts(column.flatten(), element).fill_null("null"), "[", "]")
        case Map(value):
            if column.null_count:
                column = column.take(pa.array(np.arange(len(column))))  # what is null has nothing inside then
            first, last = (column.offsets[place].as_py() for place in (0, -1))
            keys, values = (part.slice(first, last - first) for part in (column.keys, column.items))
            texts = joined(scalar_texts(keys), ":", _texts(values, value).fill_null("null"))
            return _listed(column, texts, "{", "}")
    if kind == VARIANT:
        encode = msgspec.json.encode
        found = [None if text is None else jsonvariant.read(text, "") for text in column.to_pylist()]
        return pa.array([None if value is None else encode(value).decode() for value in found], pa.string())
    return scalar_texts(column)


def _listed(column: pa.Array, texts: pa.Array, before: str, after: str) -> Texts:
    """The texts of what is in each list or map, between two marks."""
    ends = np.zeros(len(column) + 1, np.int32)
    lengths = np.diff(column.offsets.to_numpy()) if len(column) else np.zeros(0, np.int32)
    if column.null_count:
        lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    np.cumsum(lengths, out=ends[1:])
    inside = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), texts), ",")
    return _where(column, joined(before, inside, after))


def _where(column: pa.Array, texts: pa.Array) -> Texts:
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts

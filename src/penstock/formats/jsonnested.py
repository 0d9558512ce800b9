"""Write structs as JSON objects, however deep, column by column."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats import jsonvariant
from penstock.formats.jsonlists import join_lists
from penstock.formats.jsonobjects import WRITTEN, joined, scalar_texts, write_objects
from penstock.schema import VARIANT, Array, Map, Struct, Type

Texts: TypeAlias = pa.Array
"""A JSON text for every value, as bytes; null where it is missing."""


def write_bodies(bodies: pa.StructArray, kind: Struct) -> Texts:
    """A JSON object for every body, with the bytes that the reference writes."""
    if not kind.fields:
        return pa.repeat(pa.scalar(b"{}"), len(bodies))
    columns = zip(kind.fields, bodies.flatten(), strict=True)
    return write_objects({name: column if inner in WRITTEN else _texts(column, inner)
                          for (name, inner), column in columns})  # fmt: skip


def _texts(column: pa.Array, kind: Type) -> Texts:
    match kind:
        case Struct():
            return _where(column, write_bodies(column, kind))
        case Array(element):
            return _listed(column, _texts(column.flatten(), element).fill_null(b"null"), b"[", b"]")
        case Map(value):
            if column.null_count:
                column = column.take(pa.array(np.arange(len(column))))  # what is null has nothing inside then
            first, last = (column.offsets[place].as_py() for place in (0, -1))
            keys, values = (part.slice(first, last - first) for part in (column.keys, column.items))
            texts = joined(scalar_texts(keys).cast(pa.binary()), b":", _texts(values, value).fill_null(b"null"))
            return _listed(column, texts, b"{", b"}")
    if kind == VARIANT:
        encode = msgspec.json.encode
        found = [None if text is None else jsonvariant.read(text, "") for text in column.to_pylist()]
        return pa.array([None if value is None else encode(value) for value in found], pa.binary())
    return scalar_texts(column).cast(pa.binary())


def _listed(column: pa.Array, texts: pa.Array, before: bytes, after: bytes) -> Texts:
    """The texts of what is in each list or map, between two marks."""
    ends = np.zeros(len(column) + 1, np.int32)
    lengths = np.diff(column.offsets.to_numpy()) if len(column) else np.zeros(0, np.int32)
    if column.null_count:
        lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    np.cumsum(lengths, out=ends[1:])
    return _where(column, join_lists(texts, ends, before, after))


def _where(column: pa.Array, texts: pa.Array) -> Texts:
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts

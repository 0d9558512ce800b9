"""Columns as JSON objects, one per row, without a Python object per value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.compiled.machinecode import SWITCH
from penstock.formats.compiled.texts import MOST_COLUMNS, Program, write
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING

WRITTEN = (STRING, INTEGER, DOUBLE, BOOLEAN)
"""The types that `write_objects` takes."""

_ESCAPED = np.zeros(256, np.bool_)
_ESCAPED[:32] = _ESCAPED[[ord('"'), ord("\\")]] = True
_SMALL, _LARGE = 1e-3, 1e10


def write_objects(columns: Mapping[str, pa.Array]) -> pa.Array:
    """A JSON object for every row, with the bytes that the reference writes: what is null is left out."""
    every = tuple(range(len(columns)))
    made = _by_machine_code(columns, Program([(every, None)]), _objects_by_arrow)
    return _objects_by_arrow(columns) if made is None else made.values


def write_each(
    columns: Mapping[str, pa.Array], head: Sequence[str], each: Sequence[str], tail: Sequence[str]
) -> pa.ListArray:
    """For every row a list of JSON objects: one for each field that is there, between those of head and tail."""
    place = {name: index for index, name in enumerate(columns)}
    objects = [([place[one] for one in (*head, name, *tail)], place[name]) for name in each]

    def by_arrow(some: Mapping[str, pa.Array]) -> pa.ListArray:
        return _each_by_arrow(some, head, each, tail)

    made = _by_machine_code(columns, Program(objects), by_arrow)
    return by_arrow(columns) if made is None else made


def write_elements(collection: pa.ListArray, names: Sequence[str]) -> pa.ListArray:
    """For every row a list of JSON objects: one for each element of its array of structs."""
    elements = collection.flatten()
    values = write_objects({name: pc.struct_field(elements, [name]) for name in names})
    return pa.ListArray.from_arrays(_ends(pc.fill_null(pc.list_value_length(collection), 0).to_numpy()), values)


def _by_machine_code(
    columns: Mapping[str, pa.Array], program: Program, by_arrow: Callable[[Mapping[str, pa.Array]], pa.Array]
) -> pa.ListArray | None:
    """A list of objects for every row; Arrow writes the few rows that machine code does not. None if they are many."""
    if SWITCH.code is None or not columns or len(columns) > MOST_COLUMNS:
        return None
    lists, odd = write(SWITCH.code, columns, program)
    if not len(odd):
        return lists
    if 4 * len(odd) > len(lists):
        return None
    rest = by_arrow({name: column.take(pa.array(odd)) for name, column in columns.items()})
    if not isinstance(rest, pa.ListArray):
        rest = pa.ListArray.from_arrays(pa.array(np.arange(len(rest) + 1, dtype=np.int32)), rest)
    order = np.arange(len(lists))
    order[odd] = len(lists) + np.arange(len(odd))
    return pa.concat_arrays([lists, rest]).take(pa.array(order))


def _objects_by_arrow(columns: Mapping[str, pa.Array]) -> pa.Array:
    texts = {_name(name): _texts(column) for name, column in columns.items()}
    if any(text.null_count for text, _ in texts.values()):
        members = [_joined(f",{name}:{quote}", text, quote).fill_null("") for name, (text, quote) in texts.items()]
        inside = pc.utf8_slice_codeunits(_joined("", *members), 1)
        return _joined("{", inside, "}").cast(pa.binary())
    pieces: list[str | pa.Array] = []
    between = "{"
    for name, (text, quote) in texts.items():
        pieces += [f"{between}{name}:{quote}", text]
        between = f"{quote},"
    return _joined(*pieces, f"{between[:-1]}}}").cast(pa.binary())


def _each_by_arrow(
    columns: Mapping[str, pa.Array], head: Sequence[str], each: Sequence[str], tail: Sequence[str]
) -> pa.ListArray:
    before = _joined("{", *(_member("", name, columns[name], ",").fill_null("") for name in head))
    after = _joined(*(_member(",", name, columns[name], "").fill_null("") for name in tail), "}")
    objects = [_member(before, name, columns[name], after) for name in each]
    there = np.stack([written.is_valid().to_numpy(zero_copy_only=False) for written in objects], axis=1)
    order = np.arange(len(there))[:, None] + len(there) * np.arange(len(each))
    values = pa.concat_arrays(objects).cast(pa.binary()).take(pa.array(order[there]))
    return pa.ListArray.from_arrays(_ends(there.sum(axis=1)), values)


def _member(before: str | pa.Array, name: str, column: pa.Array, after: str | pa.Array) -> pa.Array:
    """A field of an object between two texts; null where its value is."""
    text, quote = _texts(column)
    return _joined(before, f"{_name(name)}:{quote}", text, quote, after)


def _name(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _ends(lengths: np.ndarray[Any, Any]) -> pa.Array:
    """The offsets of lists of these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)


def _joined(*pieces: str | pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "")


def _texts(column: pa.Array) -> tuple[pa.Array, str]:
    """The values as text, and the quotation mark that still has to go around them."""
    if pa.types.is_string(column.type):
        return (_encoded(column), "") if _has_escaped(column) else (column, '"')
    if pa.types.is_floating(column.type):
        return _decimals(column), ""
    return column.cast(pa.string()), ""


def _has_escaped(column: pa.Array) -> bool:
    _, offsets, data = column.buffers()
    if data is None:
        return False
    first, last = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]]
    return bool(_ESCAPED[np.frombuffer(data, np.uint8)[first:last]].any())


def _decimals(column: pa.Array) -> pa.Array:
    values = column.to_numpy(zero_copy_only=False)
    sizes = np.abs(values)
    # Arrow and the reference write other numbers differently, and those that are not finite not at all.
    if not pc.all(pc.is_finite(column)).as_py() or ((sizes >= _LARGE) | ((sizes < _SMALL) & (sizes > 0))).any():
        return _encoded(column)
    texts, whole = column.cast(pa.string()), np.floor(values) == values
    return pc.if_else(pa.array(whole), _joined(texts, ".0"), texts) if whole.any() else texts


def _encoded(column: pa.Array) -> pa.Array:
    encode = msgspec.json.encode
    return pa.array([None if value is None else encode(value).decode() for value in column.to_pylist()], pa.string())

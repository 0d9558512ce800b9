"""A table sorted by its keys, whose rows a binary search finds, in memory or in a mapped file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.endpoints.hashing import hashes

_NUMBERS = "\0numbers"
_DECIMAL_BYTES = 32
WIDE_BYTES = 2**31 - 1
"""More than this of text is more than Arrow's usual offsets can count."""


@dataclass(frozen=True)
class Searchable:
    """Rows whose `numbers` ascend: the keys themselves, or what is made of them where keys are text."""

    table: pa.Table
    key: str
    numbers: pa.Array

    @classmethod
    def of(cls, table: pa.Table, key: str) -> Searchable:
        """The rows of a table that have a key, in their order."""
        table = _one_piece(table.filter(_is_there(table[key])))
        numbers = _numbers(comparable(piece(table[key])))
        order = pa.array(np.argsort(numbers))
        return cls(table.take(order), key, pa.array(numbers).take(order))

    @classmethod
    def mapped(cls, path: str, key: str) -> Searchable:
        """What `write` has written: memory is the operating system's, and shared by all who look here."""
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
        return cls(table.drop_columns(_NUMBERS), key, piece(table[_NUMBERS]))

    def write(self, path: str) -> None:
        table = self.table.append_column(_NUMBERS, self.numbers)
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    @cached_property
    def keys(self) -> pa.Array:
        return comparable(piece(self.table[self.key]))

    def twice(self) -> tuple[Any, int] | None:
        """A key that is there more than once, and how often."""
        numbers = self.numbers.to_numpy(zero_copy_only=False)
        same = numbers[1:] == numbers[:-1]
        if not same.any():
            return None
        chosen = np.flatnonzero(np.append(same, False) | np.append(False, same))
        suspects = self.keys.take(pa.array(chosen))
        found = suspects if _is_text(suspects) else pa.array(_numbers(suspects))
        counts = pc.value_counts(found)
        often = counts.filter(pc.greater(counts.field("counts"), 1))
        if not len(often):
            return None
        first = pc.index(found, often[0]["values"]).as_py()
        return piece(self.table[self.key])[int(chosen[first])], often[0]["counts"].as_py()

    def find(self, keys: pa.Array) -> pa.Array:
        """The place of the row of each key, null where there is none."""
        keys = comparable(keys)
        # Arrow makes a table of hashes in every call, which pays where messages are more than rows.
        return self._searched(keys) if len(self.numbers) > len(keys) else self._hashed(keys)

    def _hashed(self, keys: pa.Array) -> pa.Array:
        if _is_text(keys):
            return pc.index_in(keys, self.keys.cast(keys.type), skip_nulls=True)
        return pc.index_in(pa.array(_numbers(keys), mask=_absent(keys)), self.numbers, skip_nulls=True)

    def _searched(self, keys: pa.Array) -> pa.Array:
        numbers, wanted = self.numbers.to_numpy(zero_copy_only=False), _numbers(keys)
        found = np.full(len(keys), -1)
        # In the order of the table one message after the other finds near memory: five times as fast.
        rows = np.argsort(wanted)
        rows = rows[~_absent(keys)[rows]]
        places = np.searchsorted(numbers, wanted[rows])
        while len(rows):
            inside = places < len(numbers)
            rows, places = rows[inside], places[inside]
            same = numbers[places] == wanted[rows]
            rows, places = rows[same], places[same]
            right = self._are_equal(keys, rows, places)
            found[rows[right]] = places[right]
            rows, places = rows[~right], places[~right] + 1  # other texts with the same number stand behind
        return pa.array(found, mask=found < 0)

    def _are_equal(self, keys: pa.Array, rows: Any, places: Any) -> Any:
        if not _is_text(keys):
            return np.ones(len(rows), np.bool_)
        stored = self.keys.take(pa.array(places)).cast(keys.type)
        return pc.equal(stored, keys.take(pa.array(rows))).to_numpy(zero_copy_only=False)


def piece(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def comparable(keys: pa.Array) -> pa.Array:
    """Keys as text, bytes or numbers that are equal where the keys are, whatever their scale."""
    if pa.types.is_decimal(keys.type):
        wide = keys.cast(pa.decimal256(76, 38))
        return pa.Array.from_buffers(pa.binary(_DECIMAL_BYTES), len(wide), wide.buffers(), wide.null_count,
                                     wide.offset).cast(pa.binary())  # fmt: skip
    if pa.types.is_date(keys.type):
        return keys.cast(pa.int32())
    return keys.cast(pa.int64()) if pa.types.is_timestamp(keys.type) else keys


def _is_text(keys: pa.Array) -> bool:
    return keys.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _is_there(keys: pa.ChunkedArray) -> Any:
    """No key is equal to what is not a number."""
    return pc.and_not(keys.is_valid(), pc.is_nan(keys)) if pa.types.is_floating(keys.type) else keys.is_valid()


def _absent(keys: pa.Array) -> Any:
    if pa.types.is_floating(keys.type):
        return np.isnan(_numbers(keys))
    return keys.is_null().to_numpy(zero_copy_only=False)


def _numbers(keys: pa.Array) -> Any:
    """Something that ascends and is equal where keys are; where they are null, it may be anything."""
    if _is_text(keys):
        return hashes(keys)
    if pa.types.is_floating(keys.type):
        return keys.to_numpy(zero_copy_only=False) + 0.0  # the negative zero is zero; null is not a number
    whole = keys.cast(pa.int8() if pa.types.is_boolean(keys.type) else keys.type)
    return (whole.fill_null(0) if whole.null_count else whole).to_numpy(zero_copy_only=False)


def _one_piece(table: pa.Table) -> pa.Table:
    """Columns of one chunk each: out of many, rows are taken five times as slowly."""
    if table.nbytes > WIDE_BYTES:
        table = table.cast(pa.schema([(field.name, _wide(field.type)) for field in table.schema]))
    return table.combine_chunks()


def _wide(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_wide(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.large_list(kind.value_field.with_type(_wide(kind.value_type)))
    return kind

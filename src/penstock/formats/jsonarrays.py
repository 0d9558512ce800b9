"""JSON texts that are in several Arrow arrays, joined to arrays of JSON without a Python object for any of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.compiled.layout import BLOCK
from penstock.formats.compiled.machinecode import SWITCH, MachineCode

_Numbers: TypeAlias = np.ndarray[Any, Any]


class Texts:
    """Some rows of each chunk, addressed as one column. BLOCK bytes behind a chunk must be readable."""

    def __init__(self, chunks: Sequence[pa.Array], rows: Sequence[_Numbers]) -> None:
        self.chunks, self.rows = chunks, rows
        places = [_places(chunk) for chunk in chunks]
        self.addresses = _joined([start[chosen] for (start, _), chosen in zip(places, rows, strict=True)])
        self.lengths = _joined([length[chosen] for (_, length), chosen in zip(places, rows, strict=True)])

    def join(self, order: _Numbers, ends: _Numbers, before: bytes, after: bytes) -> pa.Array:
        """Groups of texts in this order, each up to one of `ends`, as the members of a JSON array."""
        code = SWITCH.after(int(self.lengths[order].sum()))
        if code is not None:
            return self._by_machine_code(code, order, ends, before, after)
        offsets = np.append(0, ends).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), self._column.take(pa.array(order)).cast(pa.binary()))
        return pc.binary_join_element_wise(before, pc.binary_join(lists, b","), after, b"")

    @cached_property
    def _column(self) -> pa.Array:
        chosen = [chunk.take(pa.array(rows)) for chunk, rows in zip(self.chunks, self.rows, strict=True)]
        return pa.concat_arrays([texts.cast(pa.large_binary()) for texts in chosen])

    def _by_machine_code(
        self, code: MachineCode, order: _Numbers, ends: _Numbers, before: bytes, after: bytes
    ) -> pa.Array:
        addresses, lengths = self.addresses[order], self.lengths[order]
        group_ends = np.ascontiguousarray(ends, np.int64)
        around = len(ends) * (len(before) + len(after))
        target = np.empty(int(lengths.sum()) + len(order) + around + 2 * BLOCK, np.uint8)
        found = np.zeros(len(ends) + 1, np.int32)
        first, last = (np.frombuffer(text + bytes(BLOCK), np.uint8) for text in (before, after))
        size = code.join_texts(
            addresses.ctypes.data, lengths.ctypes.data, group_ends.ctypes.data, len(ends), first.ctypes.data,
            len(before), last.ctypes.data, len(after), target.ctypes.data, found.ctypes.data,
        )  # fmt: skip
        return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(found), pa.py_buffer(target[:size])])


def _places(texts: pa.Array) -> tuple[_Numbers, _Numbers]:
    """The address and the length of each."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return ends[:-1] + (data.address if data is not None else 0), np.diff(ends)


def _joined(parts: Sequence[_Numbers]) -> _Numbers:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)

"""Join JSON texts into JSON arrays and objects, without a Python object for any text."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.compiled.layout import BLOCK
from penstock.formats.compiled.machinecode import SWITCH, MachineCode

_Numbers: TypeAlias = np.ndarray[Any, Any]


def join_lists(texts: pa.Array, ends: _Numbers, before: bytes, after: bytes) -> pa.Array:
    """Groups of texts with commas between them, and a mark before and after each group.

    `ends` are the offsets of the groups as Arrow has them for lists: the first is 0.
    """
    texts = texts.cast(pa.binary())
    if SWITCH.code is not None:
        return _by_machine_code(SWITCH.code, texts, ends, before, after)
    inside = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), texts), b",")
    return pc.binary_join_element_wise(before, inside, after, b"")


def _by_machine_code(code: MachineCode, texts: pa.Array, ends: _Numbers, before: bytes, after: bytes) -> pa.Array:
    _, offsets, data = texts.buffers()
    begins = np.frombuffer(offsets, np.int32)[texts.offset :] if offsets is not None else np.zeros(1, np.int32)
    text = np.frombuffer(data if data is not None else b"", np.uint8)
    group_ends, groups = np.ascontiguousarray(ends[1:], np.int32), len(ends) - 1
    around = groups * (len(before) + len(after))
    target = np.empty(int(begins[len(texts)] - begins[0]) + len(texts) + around + 2 * BLOCK, np.uint8)
    found = np.zeros(groups + 1, np.int32)
    first, last = (np.frombuffer(mark + bytes(BLOCK), np.uint8) for mark in (before, after))
    size = code.join_texts(
        text.ctypes.data, begins.ctypes.data, text.ctypes.data + len(text), group_ends.ctypes.data, groups,
        first.ctypes.data, len(before), last.ctypes.data, len(after), target.ctypes.data, found[1:].ctypes.data,
    )  # fmt: skip
    return pa.Array.from_buffers(pa.binary(), groups, [None, pa.py_buffer(found), pa.py_buffer(target[:size])])

"""JSON bodies that need not be decoded to be written: they are what we would write of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.formats.compiled import layout
from penstock.formats.compiled.machinecode import SWITCH, MachineCode
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Struct

Flags = npt.NDArray[np.bool_]
_KINDS = {STRING: layout.STRING, INTEGER: layout.INTEGER, DOUBLE: layout.DOUBLE, BOOLEAN: layout.BOOLEAN}


def same_as_written(bodies: pa.Array, fields: Struct) -> Flags | None:
    """Which bodies `write_objects` would write just so of these fields, or None if nobody can tell.

    Of what it does not know it says no.
    """
    return None if SWITCH.code is None or not len(bodies) else _by_machine_code(SWITCH.code, bodies, fields)


def _by_machine_code(code: MachineCode, bodies: pa.Array, fields: Struct) -> Flags:
    _, ends, text = bodies.buffers()
    offsets = np.frombuffer(ends, np.int32)[bodies.offset : bodies.offset + len(bodies) + 1]
    data = np.frombuffer(text if text is not None else b"", np.uint8)
    tail_row = int(np.searchsorted(offsets[1:], len(data) - layout.PADDING, "right"))
    tail_start = int(offsets[tail_row])
    tail = np.concatenate([data[tail_start : offsets[-1]], np.zeros(layout.PADDING, np.uint8)])
    columns, labels = _columns(fields)
    flags = np.zeros(len(bodies), np.uint8)
    code.find_same(
        data.ctypes.data, tail.ctypes.data - tail_start, tail_row, offsets.ctypes.data, len(bodies),
        columns.ctypes.data, len(columns), flags.ctypes.data,
    )  # fmt: skip
    del labels  # the columns point to them
    found: Flags = flags.view(np.bool_)
    return found


def _columns(fields: Struct) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[Any]]]:
    columns, labels = np.zeros((len(fields.fields), layout.COLUMN_WORDS), np.int64), []
    for number, (name, kind) in enumerate(fields.fields):
        label = f"{',' if number else '{'}{json.dumps(name, ensure_ascii=False)}:".encode()
        labels.append(np.frombuffer(label + bytes(layout.BLOCK), np.uint8))
        columns[number, layout.COLUMN_KIND] = _KINDS[kind]  # type: ignore[index]
        columns[number, layout.LABEL] = labels[-1].ctypes.data
        columns[number, layout.LABEL_LENGTH] = len(label)
    return columns, labels

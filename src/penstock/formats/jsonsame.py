"""JSON bodies that need not be decoded to be written: they, or their parts, are what we would write of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.formats.arrow import arrow_type
from penstock.formats.compiled import layout
from penstock.formats.compiled.columns import KINDS, bitmap, numbers, offsets_of, tail_of
from penstock.formats.compiled.machinecode import SWITCH, MachineCode
from penstock.schema import BOOLEAN, STRING, Array, Struct, Type

Flags = npt.NDArray[np.bool_]
_Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Same:
    """Which bodies are as `write_objects` would write them; of those the fields that were wanted, and their parts.

    Of others a row has neither. What is not known to be so counts as if it were not.
    """

    flags: Flags
    fields: pa.StructArray
    parts: pa.ListArray | None


def is_compared(whole: Struct, wanted: Struct) -> bool:
    """Whether bodies have nothing inside their fields but one array of plain objects, and plain fields are wanted."""
    nested = [kind for _, kind in whole.fields if kind not in KINDS]
    plain = all(kind in KINDS and whole.get(name) == kind for name, kind in wanted.fields)
    return bool(whole.fields) and plain and (not nested or (len(nested) == 1 and _is_plain_array(nested[0])))


def _is_plain_array(kind: Type) -> bool:
    element = kind.element if isinstance(kind, Array) else None
    return isinstance(element, Struct) and bool(element.fields) and all(kind in KINDS for _, kind in element.fields)


def same_as_written(bodies: pa.Array, whole: Struct, wanted: Struct) -> Same | None:
    """The bodies that `write_objects` would write just so of all their fields, or None if nobody can tell."""
    return None if SWITCH.code is None or not len(bodies) else _Comparison(bodies, whole, wanted).made(SWITCH.code)


class _Comparison:
    """The tables that the machine code reads and fills; it keeps what they point to."""

    def __init__(self, bodies: pa.Array, whole: Struct, wanted: Struct) -> None:
        assert bodies.type in (pa.binary(), pa.string())  # ends of four bytes
        _, ends, text = bodies.buffers()
        self.rows, self.whole, self.wanted = len(bodies), whole, wanted
        self.offsets = np.frombuffer(ends, np.int32)[bodies.offset : bodies.offset + len(bodies) + 1]
        self.data = np.frombuffer(text if text is not None else b"", np.uint8)
        self.bytes = int(self.offsets[-1]) - int(self.offsets[0])
        self.kept: list[_Array] = []
        self.columns = self._table(whole)
        self.values: dict[str, _Array] = {}
        self.texts: dict[str, _Array] = {}
        self.ends = np.zeros(1, np.int32)
        for words, (name, kind) in zip(self.columns, whole.fields, strict=True):
            if isinstance(kind, Array):
                self._add_array(words, name, kind)
            elif name in wanted.names:
                self._add(words, name, kind == STRING)

    def _table(self, fields: Struct) -> npt.NDArray[np.int64]:
        columns = np.zeros((len(fields.fields), layout.COLUMN_WORDS), np.int64)
        for number, (words, (name, kind)) in enumerate(zip(columns, fields.fields, strict=True)):
            label = f"{',' if number else '{'}{json.dumps(name, ensure_ascii=False)}:".encode()
            words[layout.COLUMN_KIND] = KINDS.get(kind, layout.ARRAY)
            words[layout.LABEL] = self._address(np.frombuffer(label + bytes(layout.BLOCK), np.uint8))
            words[layout.LABEL_LENGTH] = len(label)
        return columns

    def _add(self, words: npt.NDArray[np.int64], name: str, has_text: bool) -> None:
        self.values[name] = np.zeros(self.rows, np.int64)
        words[layout.COLUMN_VALUES] = self.values[name].ctypes.data
        if has_text:
            self.texts[name] = np.empty(self.bytes + 2 * layout.BLOCK, np.uint8)  # what is not written to is not taken
            words[layout.COLUMN_TEXT] = words[layout.COLUMN_TEXT_END] = self.texts[name].ctypes.data

    def _add_array(self, words: npt.NDArray[np.int64], name: str, kind: Array) -> None:
        assert isinstance(kind.element, Struct)
        parts = self._table(kind.element)
        self._add(words, name, has_text=True)
        self.ends = np.empty(self.bytes // 2 + 2, np.int32)
        self.ends[0] = 0
        words[layout.PARTS], words[layout.PART_COUNT] = self._address(parts), len(parts)
        words[layout.COLUMN_ENDS] = self.ends[1:].ctypes.data

    def _address(self, array: _Array) -> int:
        self.kept.append(array)
        return int(array.ctypes.data)

    def made(self, code: MachineCode) -> Same:
        tail, tail_start, tail_row = tail_of(self.data, self.offsets)
        flags = np.zeros(self.rows, np.uint8)
        found = code.find_same(
            self.data.ctypes.data, tail.ctypes.data - tail_start, tail_row, self.offsets.ctypes.data, self.rows,
            self.columns.ctypes.data, len(self.columns), numbers().ctypes.data, flags.ctypes.data,
        )  # fmt: skip
        valid = None
        if found < self.rows:
            valid = bitmap(flags)
            for values in self.values.values():
                values *= flags
        columns = [self._column(code, name, kind, valid) for name, kind in self.wanted.fields]
        fields = pa.Array.from_buffers(arrow_type(self.wanted), self.rows, [None], children=columns)
        parts = [self._parts(code, name) for name, kind in self.whole.fields if isinstance(kind, Array)]
        return Same(flags.view(np.bool_), fields, parts[0] if parts else None)

    def _column(self, code: MachineCode, name: str, kind: Type, valid: pa.Buffer | None) -> pa.Array:
        values = self.values[name]
        if kind == STRING:
            ends = offsets_of(code, values)
            data = [pa.py_buffer(ends), pa.py_buffer(self.texts[name][: ends[-1]])]
        else:
            data = [bitmap(values) if kind == BOOLEAN else pa.py_buffer(values)]
        return pa.Array.from_buffers(arrow_type(kind), self.rows, [valid, *data])

    def _parts(self, code: MachineCode, name: str) -> pa.ListArray:
        places = offsets_of(code, self.values[name])
        ends = self.ends[: places[-1] + 1]
        text = pa.py_buffer(self.texts[name][: ends[-1]])
        parts = pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), text])
        return pa.ListArray.from_arrays(pa.array(places), parts)

"""Write columns in Arrow as JSON objects in Arrow, by machine code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.formats.compiled import layout
from penstock.formats.compiled.machinecode import MachineCode

_Array: TypeAlias = np.ndarray[Any, Any]
_KINDS: dict[pa.DataType, int] = {
    pa.string(): layout.STRING,
    pa.int64(): layout.INTEGER,
    pa.float64(): layout.DOUBLE,
    pa.bool_(): layout.BOOLEAN,
    pa.binary(): layout.JSON,
}
_NUMBER_BYTES = 26


def write(code: MachineCode, columns: Mapping[str, pa.Array]) -> tuple[pa.Array, _Array]:
    """An object for every row, and the rows that have to be written by somebody else; bytes are JSON already."""
    rows = len(next(iter(columns.values())))
    table = _Columns(columns)
    target = np.empty(table.room(), np.uint8)  # memory that is not written to is not taken
    ends, odd = np.zeros(rows + 1, np.int32), np.zeros(rows, np.uint8)
    length = code.write_objects(
        table.words.ctypes.data, len(columns), rows, target.ctypes.data, ends[1:].ctypes.data, odd.ctypes.data
    )
    text = [None, pa.py_buffer(ends), pa.py_buffer(target[:length])]
    return pa.Array.from_buffers(pa.binary(), rows, text), np.flatnonzero(odd)


class _Columns:
    """The table that the machine code reads; it keeps what the table points to."""

    def __init__(self, columns: Mapping[str, pa.Array]) -> None:
        self.kept: list[_Array] = []
        self.labels = [f"{json.dumps(name, ensure_ascii=False)}:".encode() for name in columns]
        self.columns = list(columns.values())
        self.words = np.zeros((len(columns), layout.COLUMN_WORDS), np.int64)
        for words, label, column in zip(self.words, self.labels, self.columns, strict=True):
            words[layout.COLUMN_KIND] = _KINDS[column.type]
            words[layout.LABEL] = self._address(np.frombuffer(label + bytes(layout.BLOCK), np.uint8))
            words[layout.LABEL_LENGTH] = len(label)
            if column.null_count:
                words[layout.COLUMN_VALID] = self._address(_bytes(column.is_valid()))
            if _is_text(column):
                _, ends, text = column.buffers()
                words[layout.COLUMN_ENDS] = self._address(np.frombuffer(ends, np.int32)[column.offset :])
                characters = np.frombuffer(text if text is not None else b"", np.uint8)
                words[layout.COLUMN_TEXT] = self._address(characters)
                words[layout.COLUMN_TEXT_END] = words[layout.COLUMN_TEXT] + len(characters)
            elif pa.types.is_boolean(column.type):
                words[layout.COLUMN_VALUES] = self._address(_bytes(column.fill_null(False)))
            else:
                values = np.frombuffer(column.buffers()[1], np.int64)[column.offset :]
                words[layout.COLUMN_VALUES] = self._address(values)

    def room(self) -> int:
        """More bytes than all objects can take."""
        total = 2 * layout.BLOCK + 2 * len(self.columns[0])
        for label, column in zip(self.labels, self.columns, strict=True):
            is_text = _is_text(column)
            total += len(column) * (len(label) + 3 + (0 if is_text else _NUMBER_BYTES))
            total += _text_bytes(column) if is_text else 0
        return total

    def _address(self, array: _Array) -> int:
        self.kept.append(array)
        return int(array.ctypes.data)


def _is_text(column: pa.Array) -> bool:
    return column.type in (pa.string(), pa.binary())


def _bytes(flags: pa.Array) -> _Array:
    made: _Array = flags.to_numpy(zero_copy_only=False).view(np.uint8)
    return made


def _text_bytes(column: pa.Array) -> int:
    ends = np.frombuffer(column.buffers()[1], np.int32)
    return int(ends[column.offset + len(column)]) - int(ends[column.offset])

"""Lines of a file as Arrow arrays, a bounded piece at a time, without a Python object per line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.compiled.machinecode import SWITCH, MachineCode
from penstock.formats.jsonfiles import LINES
from penstock.formats.limits import MAX_BODY_BYTES
from penstock.formats.opening import open_file

CHUNK_BYTES = 8 * 1024 * 1024
"""Chunks start at multiples of it, so positions do not change when a file grows."""

BLOCK_BYTES = 4 * 1024 * 1024
"""The bytes of a file that are in memory at a time, unless a single line is longer."""


@dataclass(frozen=True)
class Chunk:
    """The lines of a file that start in [start, end), or all of it; `number` counts the file's chunks."""

    path: str
    topic: str
    number: int
    start: int
    end: int
    records: str = LINES

    @property
    def size(self) -> int:
        return self.end - self.start


def chunks(
    path: str, topic: str, size: int, whole: bool = False, chunk_bytes: int = CHUNK_BYTES, records: str = LINES
) -> list[Chunk]:
    """A file as chunks; one chunk when it cannot be entered in the middle."""
    if whole or records != LINES or path.endswith(".gz") or size <= chunk_bytes:
        return [Chunk(path, topic, 0, 0, size, records)]
    starts = range(0, size, chunk_bytes)
    return [Chunk(path, topic, number, start, min(start + chunk_bytes, size)) for number, start in enumerate(starts)]


def read_lines(chunk: Chunk) -> Iterator[pa.Array]:
    """Blocks of lines as binary arrays, empty lines left out."""
    whole = chunk.path.endswith(".gz")
    with open_file(chunk.path) as file:
        position = 0 if whole else _first_line(file, chunk.start)
        end = None if whole else chunk.end
        while end is None or position < end:
            block = file.read(BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - position))
            if not block:
                return
            if not block.endswith(b"\n"):
                block += _rest_of_line(file, len(block) - block.rfind(b"\n") - 1)
            position = file.tell()
            lines = as_lines(block)
            if len(lines):
                yield lines


def _first_line(file: Any, start: int) -> int:
    """Where the first line that starts at or after `start` starts."""
    if start == 0:
        return 0
    file.seek(start - 1)
    _skip_line(file)
    return int(file.tell())


def _rest_of_line(file: Any, length: int) -> bytes:
    """The rest of a line; a line that is too long for a message is cut, and its size shows that it is too long."""
    rest: bytes = file.readline(max(MAX_BODY_BYTES + 1 - length, 1))
    if not rest.endswith(b"\n"):
        _skip_line(file)
    return rest


def _skip_line(file: Any) -> None:
    while (skipped := file.readline(BLOCK_BYTES)) and not skipped.endswith(b"\n"):
        continue


def as_lines(block: bytes) -> pa.Array:
    """The lines of a block without their ends; empty lines are left out."""
    code = SWITCH.after(len(block))
    return lines_by_arrow(block) if code is None else lines_by_machine_code(block, code)


def lines_by_machine_code(block: bytes, code: MachineCode) -> pa.Array:
    data = numpy.frombuffer(block, numpy.uint8)
    lines = numpy.empty(len(data), numpy.uint8)
    offsets = numpy.empty(len(data) + 2, numpy.int32)  # memory that is not written to is not taken
    offsets[0] = 0
    count = code.cut_lines(data.ctypes.data, len(data), lines.ctypes.data, offsets.ctypes.data)
    buffers = [None, pa.py_buffer(offsets[: count + 1]), pa.py_buffer(lines[: offsets[count]])]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def lines_by_arrow(block: bytes) -> pa.Array:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    ends = numpy.array([0, len(block)], numpy.int32)
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(block)])
    lines = pc.split_pattern(whole, b"\n").values
    if block.endswith(b"\n"):
        lines = lines.slice(0, len(lines) - 1)
    lengths = pc.binary_length(lines)
    return lines.filter(pc.greater(lengths, 0)) if pc.min(lengths).as_py() == 0 else lines

"""A block of text to the lines in it, as machine code."""

from __future__ import annotations

from numba import cfunc, njit, types

from penstock.formats.compiled.blocks import byte_at, copy_block, count_before_line_end, put_byte, put_four_bytes
from penstock.formats.compiled.layout import BLOCK

inline = njit(error_model="numpy", forceinline=True)

_LINE_END, _RETURN = (ord(character) for character in "\n\r")


@inline
def _copy_line(position: int, end: int, target: int) -> tuple[int, int]:
    """Copy up to the line's end or the last byte; where both are then."""
    while position + BLOCK <= end:
        count = count_before_line_end(position)
        copy_block(position, target)
        position += count
        target += count
        if count < BLOCK:
            return position, target
    while position < end and byte_at(position) != _LINE_END:
        put_byte(target, byte_at(position))
        position += 1
        target += 1
    return position, target


@cfunc(types.int64(*[types.int64] * 4), error_model="numpy")
def cut_lines(data: int, length: int, target: int, offsets: int) -> int:
    """How many lines are not empty. They are copied without their ends; `offsets` gets where each one ends."""
    rows = 0
    position, end, written = data, data + length, target
    while position < end:
        start = written
        position, written = _copy_line(position, end, written)
        if position < end and written > start and byte_at(written - 1) == _RETURN:
            written -= 1
        position += 1
        if written > start:
            rows += 1
            put_four_bytes(offsets + 4 * rows, written - target)
    return rows

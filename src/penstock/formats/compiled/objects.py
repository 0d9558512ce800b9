"""Columns to JSON objects, as machine code."""

from __future__ import annotations

from numba import cfunc, njit, types

from penstock.formats.compiled import layout
from penstock.formats.compiled.blocks import (
    byte_at,
    copied,
    copy_block,
    count_unescaped,
    double_at,
    four_bytes_at,
    put_byte,
    put_four_bytes,
    word,
)
from penstock.formats.compiled.layout import BLOCK

inline = njit(error_model="numpy", forceinline=True)
apart = njit(error_model="numpy")

_QUOTE, _BACKSLASH, _SPACE, _COMMA, _POINT, _MINUS, _ZERO = (ord(character) for character in '"\\ ,.-0')
_OPEN, _CLOSE = (ord(character) for character in "{}")
_TRUE, _ALSE = (int.from_bytes(text, "little") for text in (b"true", b"alse"))
_LARGEST, _SMALLEST = 1e10, 1e-3
_MOST_DECIMALS = 4


@inline
def _text(source: int, length: int, readable: int, target: int) -> tuple[int, bool]:
    """Between quotes; true if something in it must be written as an escape."""
    odd = False
    put_byte(target, _QUOTE)
    target += 1
    end = source + length
    while source < end and source + BLOCK <= readable:
        odd |= count_unescaped(source) < min(BLOCK, end - source)
        copy_block(source, target)
        source += BLOCK
        target += BLOCK
    if source >= end:
        target -= source - end
    while source < end:
        byte = byte_at(source)
        odd |= byte < _SPACE or byte in (_QUOTE, _BACKSLASH)
        put_byte(target, byte)
        source += 1
        target += 1
    put_byte(target, _QUOTE)
    return target + 1, odd


@inline
def _digits(number: int, fewest: int, target: int) -> int:
    count, rest = 1, number // 10
    while rest > 0:
        rest //= 10
        count += 1
    if count < fewest:
        count = fewest
    position = target + count
    while position > target:
        position -= 1
        put_byte(position, _ZERO + number % 10)
        number //= 10
    return target + count


@inline
def _whole(number: int, target: int) -> tuple[int, bool]:
    if number < 0:
        put_byte(target, _MINUS)
        target += 1
        number = -number
    if number < 0:
        return target, True  # the smallest of all has no positive counterpart
    return _digits(number, 1, target), False


@inline
def _decimal(value: float, bits: int, target: int) -> tuple[int, bool]:
    """A number of few decimals as the shortest text that means it; others are odd."""
    if bits < 0:
        value = -value
        put_byte(target, _MINUS)
        target += 1
        if value == 0.0:
            return target, True
    if not (value < _LARGEST and (value >= _SMALLEST or value == 0.0)):
        return target, True
    power, decimals = 1, 0
    number = int(value + 0.5)
    while float(number) / float(power) != value:
        decimals += 1
        if decimals > _MOST_DECIMALS:
            return target, True
        power *= 10
        number = int(value * power + 0.5)
    target = _digits(number // power, 1, target)
    put_byte(target, _POINT)
    return _digits(number % power, max(decimals, 1), target + 1), False


@inline
def _truth(value: int, target: int) -> int:
    if value != 0:
        put_four_bytes(target, _TRUE)
        return target + 4
    put_byte(target, ord("f"))
    put_four_bytes(target + 1, _ALSE)
    return target + 5


@inline
def _value(column: int, row: int, target: int) -> tuple[int, bool]:
    kind, values = word(column, layout.COLUMN_KIND), word(column, layout.COLUMN_VALUES)
    if kind == layout.STRING:
        ends = word(column, layout.COLUMN_ENDS) + 4 * row
        start = four_bytes_at(ends)
        text, readable = word(column, layout.COLUMN_TEXT), word(column, layout.COLUMN_TEXT_END)
        return _text(text + start, four_bytes_at(ends + 4) - start, readable, target)
    if kind == layout.INTEGER:
        return _whole(word(values, row), target)
    if kind == layout.DOUBLE:
        return _decimal(double_at(values + 8 * row), word(values, row), target)
    return _truth(byte_at(values + row), target), False


@inline
def _is_there(column: int, row: int) -> bool:
    valid = word(column, layout.COLUMN_VALID)
    return valid == 0 or byte_at(valid + row) != 0


@inline
def _object(columns: int, count: int, row: int, target: int) -> tuple[int, bool]:
    put_byte(target, _OPEN)
    target += 1
    odd, first = False, True
    for index in range(count):
        column = columns + 8 * layout.COLUMN_WORDS * index
        if _is_there(column, row):
            if not first:
                put_byte(target, _COMMA)
                target += 1
            first = False
            target = copied(word(column, layout.LABEL), word(column, layout.LABEL_LENGTH), target)
            target, is_odd = _value(column, row, target)
            odd |= is_odd
    put_byte(target, _CLOSE)
    return target + 1, odd


@cfunc(types.int64(*[types.int64] * 6), error_model="numpy")
def write_objects(columns: int, count: int, rows: int, target: int, ends: int, odd: int) -> int:
    """How many bytes were written, an object for each row.

    `ends` gets where each one ends, and `odd` a 1 for rows that must be written again.
    """
    written = target
    for row in range(rows):
        written, is_odd = _object(columns, count, row, written)
        put_four_bytes(ends + 4 * row, written - target)
        if is_odd:
            put_byte(odd + row, 1)
    return written - target

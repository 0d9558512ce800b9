"""Whether JSON bodies are, byte for byte, what `write_objects` would write of them, as machine code.

It need not find all of them, but what it says is so: the body can be decoded, and has every field, in order, with
nothing between them; strings have no escapes, and numbers the shortest text that means them. Values that somebody
wants are read on the way, and the elements of one array of objects are copied.
"""

from __future__ import annotations

from numba import cfunc, njit, types

from penstock.formats.compiled import layout
from penstock.formats.compiled.blocks import (
    byte_at,
    copied,
    count_digits,
    four_bytes_at,
    put_byte,
    put_four_bytes,
    put_word,
    word,
)
from penstock.formats.compiled.numbers import read_double, read_integer
from penstock.formats.compiled.strings import is_same, string_end
from penstock.formats.limits import MAX_BODY_BYTES

inline = njit(error_model="numpy", forceinline=True)

REFUSED = -1
_QUOTE, _CLOSE, _MINUS, _POINT, _ZERO, _F, _COMMA, _OPEN_ARRAY, _CLOSE_ARRAY = (ord(mark) for mark in '"}-.0f,[]')
_TRUE, _ALSE = (int.from_bytes(letters, "little") for letters in (b"true", b"alse"))
_MOST_DIGITS, _MOST_WHOLE, _MOST_DECIMALS = 18, 9, 4


@inline
def _after_string(position: int, end: int) -> int:
    if byte_at(position) != _QUOTE:
        return REFUSED
    closing, escaped = string_end(position + 1, end)
    return REFUSED if closing < 0 or closing >= end or escaped else closing + 1


@inline
def _after_whole(position: int, most: int) -> int:
    """Digits as they are written of a number; a zero has no sign."""
    negative = byte_at(position) == _MINUS
    position += negative
    count = count_digits(position)
    if count == 0 or count > most or (byte_at(position) == _ZERO and (count > 1 or negative)):
        return REFUSED
    return position + count


@inline
def _after_decimal(position: int) -> int:
    """Few digits, so that no other text as short means the same double."""
    point = _after_whole(position, _MOST_WHOLE)
    if point < 0 or byte_at(point) != _POINT:
        return REFUSED
    count = count_digits(point + 1)
    if count == 0 or count > _MOST_DECIMALS:
        return REFUSED
    is_small = point - position == 1 and byte_at(position) == _ZERO and byte_at(point + 1) == _ZERO
    if count > 1 and (byte_at(point + count) == _ZERO or is_small):
        return REFUSED
    return point + 1 + count


@inline
def _after_word(position: int) -> int:
    if four_bytes_at(position) == _TRUE:
        return position + 4
    return position + 5 if byte_at(position) == _F and four_bytes_at(position + 1) == _ALSE else REFUSED


@inline
def _after_value(position: int, end: int, kind: int) -> int:
    if kind == layout.STRING:
        return _after_string(position, end)
    if kind == layout.INTEGER:
        return _after_whole(position, _MOST_DIGITS)
    if kind == layout.DOUBLE:
        return _after_decimal(position)
    return _after_word(position)


@inline
def _after_label(position: int, end: int, column: int) -> int:
    """The label of a column is all that stands between two values."""
    length = word(column, layout.LABEL_LENGTH)
    if position + length >= end or not is_same(position, word(column, layout.LABEL), length):
        return REFUSED
    return position + length


@inline
def _after_element(position: int, end: int, columns: int, count: int) -> int:
    for index in range(count):
        column = columns + 8 * layout.COLUMN_WORDS * index
        position = _after_label(position, end, column)
        if position < 0:
            return REFUSED
        position = _after_value(position, end, word(column, layout.COLUMN_KIND))
        if position < 0 or position >= end:
            return REFUSED
    return position + 1 if byte_at(position) == _CLOSE else REFUSED


@inline
def _after_array(position: int, end: int, array: int, row: int) -> int:
    """Its elements are copied one behind the other."""
    if byte_at(position) != _OPEN_ARRAY:
        return REFUSED
    parts, count, ends = word(array, layout.PARTS), word(array, layout.PART_COUNT), word(array, layout.COLUMN_ENDS)
    text, target, number = word(array, layout.COLUMN_TEXT), word(array, layout.COLUMN_TEXT_END), 0
    position += 1
    if byte_at(position) == _CLOSE_ARRAY:
        position += 1
    else:
        while True:
            after = _after_element(position, end, parts, count)
            if after < 0 or after >= end:
                return REFUSED
            target = copied(position, after - position, target)
            put_four_bytes(ends + 4 * number, target - text)
            number += 1
            position = after + 1
            mark = byte_at(after)
            if mark == _CLOSE_ARRAY:
                break
            if mark != _COMMA:
                return REFUSED
    put_word(word(array, layout.COLUMN_VALUES), row, number)
    return position


@inline
def _put_value(start: int, after: int, column: int, kind: int, row: int, numbers: int) -> int:
    """Where it ends, once more; refused if its value does not end there: an exponent may follow."""
    values = word(column, layout.COLUMN_VALUES)
    value, end = 0, after
    if kind == layout.STRING:
        value = after - start - 2
        copied(start + 1, value, word(column, layout.COLUMN_TEXT_END))
    elif kind == layout.INTEGER:
        end, value = read_integer(start, numbers)
    elif kind == layout.DOUBLE:
        end, value = read_double(start, numbers)
    else:
        value = after - start == 4
    put_word(values, row, value)
    return after if end == after else REFUSED


@inline
def _is_as_written(position: int, end: int, columns: int, count: int, row: int, numbers: int) -> bool:
    if end - position > MAX_BODY_BYTES:
        return False
    for index in range(count):
        column = columns + 8 * layout.COLUMN_WORDS * index
        kind = word(column, layout.COLUMN_KIND)
        start = _after_label(position, end, column)
        if start < 0:
            return False
        if kind == layout.ARRAY:
            position = _after_array(start, end, column, row)
        else:
            position = _after_value(start, end, kind)
            if 0 <= position < end and word(column, layout.COLUMN_VALUES):
                position = _put_value(start, position, column, kind, row, numbers)
        if position < 0 or position >= end:
            return False
    return byte_at(position) == _CLOSE and position + 1 == end


@inline
def _keep_texts(columns: int, count: int, row: int) -> None:
    """What was copied of a row counts only when the row is known to be as it would be written."""
    for index in range(count):
        column = columns + 8 * layout.COLUMN_WORDS * index
        kind, values = word(column, layout.COLUMN_KIND), word(column, layout.COLUMN_VALUES)
        if values and (kind == layout.STRING or kind == layout.ARRAY):
            target, length = word(column, layout.COLUMN_TEXT_END), word(values, row)
            if kind == layout.STRING:
                put_word(column, layout.COLUMN_TEXT_END, target + length)
            elif length:
                ends = word(column, layout.COLUMN_ENDS) + 4 * length
                put_word(column, layout.COLUMN_ENDS, ends)
                put_word(column, layout.COLUMN_TEXT_END, word(column, layout.COLUMN_TEXT) + four_bytes_at(ends - 4))


@cfunc(types.int64(*[types.int64] * 9), error_model="numpy")
def find_same(
    data: int, tail: int, tail_row: int, offsets: int, rows: int, columns: int, count: int, numbers: int, flags: int
) -> int:
    """How many bodies are as they would be written; `flags` gets a 1 for each of them."""
    found = 0
    for row in range(rows):
        base = data if row < tail_row else tail
        start, end = four_bytes_at(offsets + 4 * row), four_bytes_at(offsets + 4 * row + 4)
        if _is_as_written(base + start, base + end, columns, count, row, numbers):
            _keep_texts(columns, count, row)
            put_byte(flags + row, 1)
            found += 1
    return found

"""Whether JSON bodies are, byte for byte, what `write_objects` would write of them, as machine code.

It need not find all of them, but what it says is so: the body can be decoded, and has every field, in order, with
nothing between them; strings have no escapes, and numbers the shortest text that means them.
"""

from __future__ import annotations

from numba import cfunc, njit, types

from penstock.formats.compiled import layout
from penstock.formats.compiled.blocks import byte_at, count_digits, four_bytes_at, put_byte, word
from penstock.formats.compiled.strings import is_same, string_end
from penstock.formats.limits import MAX_BODY_BYTES

inline = njit(error_model="numpy", forceinline=True)

REFUSED = -1
_QUOTE, _CLOSE, _MINUS, _POINT, _ZERO, _F = (ord(character) for character in '"}-.0f')
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
def _is_as_written(position: int, end: int, columns: int, count: int) -> bool:
    if end - position > MAX_BODY_BYTES:
        return False
    for index in range(count):
        column = columns + 8 * layout.COLUMN_WORDS * index
        length = word(column, layout.LABEL_LENGTH)
        if position + length >= end or not is_same(position, word(column, layout.LABEL), length):
            return False
        position = _after_value(position + length, end, word(column, layout.COLUMN_KIND))
        if position < 0 or position >= end:
            return False
    return byte_at(position) == _CLOSE and position + 1 == end


@cfunc(types.int64(*[types.int64] * 8), error_model="numpy")
def find_same(
    data: int, tail: int, tail_row: int, offsets: int, rows: int, columns: int, count: int, flags: int
) -> int:
    """How many bodies are as they would be written; `flags` gets a 1 for each of them.

    The label of a column is all that stands between two values.
    """
    found = 0
    for row in range(rows):
        base = data if row < tail_row else tail
        start, end = four_bytes_at(offsets + 4 * row), four_bytes_at(offsets + 4 * row + 4)
        if _is_as_written(base + start, base + end, columns, count):
            put_byte(flags + row, 1)
            found += 1
    return found

"""JSON strings: where they end, and whether all of their bytes are allowed."""

from __future__ import annotations

from numba import njit

from penstock.formats.compiled.blocks import byte_at, count_equal, count_plain, put_byte
from penstock.formats.compiled.layout import BLOCK

inline = njit(error_model="numpy", forceinline=True)
apart = njit(error_model="numpy")

REFUSED = -1
_QUOTE, _BACKSLASH, _SPACE = (ord(character) for character in '"\\ ')
_SPACES = tuple(ord(character) for character in " \t\n\r")
_SURROGATE = 0xD800 >> 11
_ESCAPED = tuple(ord(character) for character in '"\\/bfnrt')
_MEANT = tuple(ord(character) for character in '"\\/\b\f\n\r\t')


@inline
def is_same(left: int, right: int, length: int) -> bool:
    while length > BLOCK and count_equal(left, right) == BLOCK:
        left += BLOCK
        right += BLOCK
        length -= BLOCK
    return count_equal(left, right) >= length


@inline
def after_space(position: int, end: int) -> int:
    while position < end:
        byte = byte_at(position)
        if byte > _SPACE or byte not in _SPACES:
            break
        position += 1
    return position


@inline
def _after_character(position: int) -> int:
    """A character beyond ASCII in UTF-8: not longer than needed, no surrogate, at most U+10FFFF."""
    first = byte_at(position)
    if first < 0xC2 or first > 0xF4:
        return REFUSED
    count = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    point = first & (0x7F >> count)
    for index in range(1, count):
        byte = byte_at(position + index)
        if byte & 0xC0 != 0x80:
            return REFUSED
        point = point << 6 | byte & 0x3F
    if count == 3 and (point < 0x800 or point >> 11 == _SURROGATE):
        return REFUSED
    if count == 4 and (point < 0x10000 or point > 0x10FFFF):
        return REFUSED
    return position + count


@inline
def _hex_digit(position: int) -> int:
    """The value of a digit, or more than any two digits have."""
    byte = byte_at(position)
    if ord("0") <= byte <= ord("9"):
        return byte - ord("0")
    letter = (byte | 32) - ord("a")
    return letter + 10 if 0 <= letter < 6 else 256


@inline
def _code_unit(position: int) -> int:
    """The number that four digits write, or more than any four digits can."""
    upper = _hex_digit(position) << 4 | _hex_digit(position + 1)
    lower = _hex_digit(position + 2) << 4 | _hex_digit(position + 3)
    return upper << 8 | lower if upper <= 0xFF and lower <= 0xFF else 1 << 16


@inline
def _after_escape(position: int) -> int:
    """Any escape but the halves of surrogate pairs."""
    mark = byte_at(position + 1)
    if mark == ord("u"):
        unit = _code_unit(position + 2)
        return REFUSED if unit >= 1 << 16 or unit >> 11 == _SURROGATE else position + 6
    return position + 2 if mark in _ESCAPED else REFUSED


@apart
def _odd_string_end(position: int, end: int) -> tuple[int, bool]:
    escaped = False
    while 0 <= position < end:
        count = count_plain(position)
        position += count
        byte = byte_at(position)
        if count == BLOCK:
            continue
        if byte == _QUOTE:
            return position, escaped
        if byte == _BACKSLASH:
            escaped = True
            position = _after_escape(position)
        else:
            position = _after_character(position)
    return REFUSED, escaped


@inline
def string_end(position: int, end: int) -> tuple[int, bool]:
    """Where the closing quote is, and whether there are escapes before it."""
    count = count_plain(position)
    if byte_at(position + count) == _QUOTE:
        return position + count, False
    return _odd_string_end(position + (count if count == BLOCK else 0), end)


@inline
def _put_character(point: int, target: int) -> int:
    """Write a character below U+10000 as UTF-8; where the next one goes."""
    if point < 0x80:
        put_byte(target, point)
        return target + 1
    if point < 0x800:
        put_byte(target, 0xC0 | point >> 6)
        put_byte(target + 1, 0x80 | point & 0x3F)
        return target + 2
    put_byte(target, 0xE0 | point >> 12)
    put_byte(target + 1, 0x80 | point >> 6 & 0x3F)
    put_byte(target + 2, 0x80 | point & 0x3F)
    return target + 3


@apart
def copy_unescaped(position: int, closing: int, target: int) -> int:
    """Write what a string with escapes says; where the next one goes. The escapes were checked by `string_end`."""
    while position < closing:
        byte = byte_at(position)
        if byte != _BACKSLASH:
            put_byte(target, byte)
            position += 1
            target += 1
            continue
        mark = byte_at(position + 1)
        if mark == ord("u"):
            target = _put_character(_code_unit(position + 2), target)
            position += 6
            continue
        for index in range(len(_ESCAPED)):
            if mark == _ESCAPED[index]:
                put_byte(target, _MEANT[index])
        position += 2
        target += 1
    return target

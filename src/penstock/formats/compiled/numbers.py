"""JSON numbers to 64-bit integers and doubles, exactly, or not at all."""

from __future__ import annotations

from numba import njit

from penstock.formats.compiled.blocks import (
    byte_at,
    count_digits,
    is_below,
    leading_zeros,
    shift_right,
    upper_product,
    word,
)
from penstock.formats.compiled.layout import BLOCK, LARGEST_POWER, SMALLEST_POWER, TENS

inline = njit(error_model="numpy", forceinline=True)

REFUSED = -1
MOST_DIGITS = 19
_MINUS, _PLUS, _DOT, _ZERO, _E = (ord(character) for character in "-+.0e")


@inline
def _up_to_eight_digits(position: int, count: int) -> int:
    """Neighbours are joined to pairs, pairs to fours, fours to eight; zeros stand for digits that are missing."""
    digits = word(position, 0) << (64 - 8 * count) if count else 0
    pairs = shift_right((digits & 0x0F0F0F0F0F0F0F0F) * 2561, 8)
    fours = shift_right((pairs & 0x00FF00FF00FF00FF) * 6553601, 16)
    return shift_right((fours & 0x0000FFFF0000FFFF) * 42949672960001, 32)


@inline
def _digits(position: int, count: int, numbers: int) -> int:
    """At most MOST_DIGITS digits as an unsigned word."""
    value = 0
    while count > 8:
        value = value * 100_000_000 + _up_to_eight_digits(position, 8)
        position += 8
        count -= 8
    return value * word(numbers, count) + _up_to_eight_digits(position, count)


@inline
def split_number(position: int) -> tuple[int, int, int, int]:
    """Where a number ends, how many digits are before and after its dot, and its exponent."""
    position += byte_at(position) == _MINUS
    whole = count_digits(position)
    if whole == 0 or whole == BLOCK or (whole > 1 and byte_at(position) == _ZERO):
        return REFUSED, 0, 0, 0
    position += whole
    fraction = exponent = 0
    if byte_at(position) == _DOT:
        fraction = count_digits(position + 1)
        if fraction == 0 or fraction == BLOCK:
            return REFUSED, 0, 0, 0
        position += 1 + fraction
    if byte_at(position) | 32 == _E:
        sign = byte_at(position + 1)
        position += 2 if sign in (_PLUS, _MINUS) else 1
        count = count_digits(position)
        if count == 0 or count > 8:
            return REFUSED, 0, 0, 0
        exponent = _up_to_eight_digits(position, count)
        exponent = -exponent if sign == _MINUS else exponent
        position += count
    return position, whole, fraction, exponent


@inline
def read_integer(position: int, numbers: int) -> tuple[int, int]:
    negative = byte_at(position) == _MINUS
    position += negative
    count = count_digits(position)
    if count == 0 or count > MOST_DIGITS or (count > 1 and byte_at(position) == _ZERO):
        return REFUSED, 0
    value = _digits(position, count, numbers)
    if value < 0:  # beyond 64 bits with a sign
        return REFUSED, 0
    return position + count, -value if negative else value


@inline
def read_double(position: int, numbers: int) -> tuple[int, int]:
    """The bits of the nearest double."""
    end, whole, fraction, exponent = split_number(position)
    power = exponent - fraction
    if end < 0 or whole + fraction > MOST_DIGITS or power < SMALLEST_POWER or power > LARGEST_POWER:
        return REFUSED, 0
    negative = byte_at(position) == _MINUS
    position += negative
    digits = _digits(position, whole, numbers)
    if fraction:
        digits = digits * word(numbers, fraction) + _digits(position + whole + 1, fraction, numbers)
    if digits == 0:
        return (REFUSED if negative else end), 0
    bits = nearest_double(digits, power, numbers)
    return (REFUSED if bits < 0 else end), (bits | (-1 << 63) if negative else bits)


@inline
def nearest_double(digits: int, power: int, numbers: int) -> int:
    """The bits of digits * 10 ** power: D. Lemire, "Number Parsing at a Gigabyte per Second", 2021, algorithm 1.

    REFUSED where the product of 128 bits does not tell which double is nearest, and below the normal ones.
    """
    five = numbers + 8 * (TENS + 2 * (power - SMALLEST_POWER))
    shift = leading_zeros(digits)
    digits <<= shift
    upper = upper_product(digits, word(five, 0))
    lower = digits * word(five, 0)
    if upper & 0x1FF == 0x1FF:
        more = upper_product(digits, word(five, 1))
        lower += more
        upper += is_below(lower, more)
    if lower == -1 and (power < -27 or power > 55):
        return REFUSED
    top = shift_right(upper, 63)
    mantissa = shift_right(upper, top + 9)
    exponent = (217706 * power >> 16) + 1086 + top - shift
    if exponent <= 0:
        return REFUSED
    if is_below(lower, 2) and -4 <= power <= 23 and mantissa & 3 == 1 and mantissa << (top + 9) == upper:
        mantissa &= ~1  # exactly between two doubles: the even one
    mantissa = shift_right(mantissa + (mantissa & 1), 1)
    if mantissa == 1 << 53:
        mantissa >>= 1
        exponent += 1
    if exponent >= 2047:
        return REFUSED
    return exponent << 52 | mantissa & ~(1 << 52)

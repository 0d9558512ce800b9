"""Exact arithmetic of DECIMAL: the types of results, by SQL's rules for digits and decimals, and their values.

A value carries the decimals of its type, so a meaning needs no types. What has more than 38 digits is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from functools import reduce
from typing import Any

from penstock.errors import TypeMismatch
from penstock.schema import INTEGER, DecimalType, Type
from penstock.values import MOST_DIGITS, exactly, rounded

FEWEST_DECIMALS = 6
"""Of a quotient."""

SECONDS = DecimalType(18, 6)
"""The time between two instants: 9,999 years in microseconds."""

_PRECISE = Context(prec=4 * MOST_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)


def as_decimal(kind: Type) -> DecimalType:
    """An exact number as a DECIMAL."""
    return kind if isinstance(kind, DecimalType) else DecimalType(19, 0)


def _capped(whole: int, scale: int) -> DecimalType:
    return DecimalType(min(MOST_DIGITS, whole + scale), scale)


def _whole(kind: DecimalType) -> int:
    return kind.precision - kind.scale


def sum_type(left: DecimalType, right: DecimalType) -> DecimalType:
    return _capped(max(_whole(left), _whole(right)) + 1, max(left.scale, right.scale))


def product_type(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = left.scale + right.scale
    if scale > MOST_DIGITS:
        raise TypeMismatch(f"{left} * {right} would have {scale} decimals, and there are at most {MOST_DIGITS}",
                           fix="round one of them before: round(value, 2)")  # fmt: skip
    return DecimalType(min(MOST_DIGITS, left.precision + right.precision + 1), scale)


def quotient_type(left: DecimalType, right: DecimalType) -> DecimalType:
    return _capped(_whole(left) + right.scale, max(left.scale, right.scale, FEWEST_DECIMALS))


def rounded_type(kind: DecimalType, digits: int) -> DecimalType:
    return kind if digits >= kind.scale else _capped(_whole(kind) + 1, digits)


def total_type(kind: DecimalType) -> DecimalType:
    """The sum of many."""
    return _capped(_whole(kind) + 10, kind.scale)


def common_type(left: DecimalType, right: DecimalType) -> DecimalType:
    """What holds all values of both."""
    scale, whole = max(left.scale, right.scale), max(_whole(left), _whole(right))
    if whole + scale > MOST_DIGITS:
        raise TypeMismatch(f"no type holds all values of {left} and of {right}",
                           fix="convert one of them: to_decimal(value, 38, 2)")  # fmt: skip
    return DecimalType(whole + scale, scale)


def is_exact(*values: Any) -> bool:
    """Some are DECIMAL, and none is a DOUBLE."""
    return any(isinstance(value, Decimal) for value in values) and not any(isinstance(v, float) for v in values)


def held(number: Decimal) -> Decimal | None:
    """The number, if a DECIMAL has so many digits."""
    fits = not number or number.adjusted() - int(number.as_tuple().exponent) < MOST_DIGITS
    return (number if number else number.copy_abs()) if fits else None


def of_two(operation: Callable[[Context, Decimal, Decimal], Decimal]) -> Callable[[Any, Any], Decimal | None]:
    def apply(left: Any, right: Any) -> Decimal | None:
        return held(operation(_PRECISE, Decimal(left), Decimal(right)))

    return apply


add, subtract, multiply = of_two(Context.add), of_two(Context.subtract), of_two(Context.multiply)


def total(numbers: Sequence[Decimal]) -> Decimal:
    """Their sum, however many digits it has."""
    return reduce(_PRECISE.add, numbers)


def decimals(number: Any) -> int:
    return -int(number.as_tuple().exponent) if isinstance(number, Decimal) else 0


def divide(left: Any, right: Any) -> Decimal | None:
    return None if right == 0 else held(quotient(left, right))


def quotient(left: Any, right: Any) -> Decimal:
    """To the decimals of its type, half up, of the exact quotient; however many digits that has."""
    scale = max(decimals(left), decimals(right), FEWEST_DECIMALS)
    numerator, denominator = (int(Decimal(side).scaleb(scale, _PRECISE)) for side in (left, right))
    whole, rest = divmod(abs(numerator) * 10**scale, abs(denominator))
    whole += 2 * rest >= abs(denominator)
    return Decimal(-whole if (numerator < 0) != (denominator < 0) else whole).scaleb(-scale, _PRECISE)


def to_scale(number: Decimal, digits: int, rounding: str) -> Decimal | None:
    return number if digits >= decimals(number) else held(rounded(number, digits, rounding))


def converted(number: Decimal, precision: int, scale: int) -> Decimal | None:
    """Half up; None if the digits before the point are too many."""
    if number and number.adjusted() > MOST_DIGITS:
        return None
    return exactly(rounded(number, scale, ROUND_HALF_UP), DecimalType(precision, scale))


def as_literal(number: Decimal) -> Decimal | None:
    """A number that somebody wrote, with as many decimals as were written; None if it has too many digits."""
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or number.adjusted() >= MOST_DIGITS or exponent < -MOST_DIGITS:
        return None
    return held(rounded(number, 0, ROUND_HALF_UP) if exponent > 0 else number)


def literal_type(number: Decimal) -> DecimalType:
    scale = decimals(number)
    return DecimalType(max(number.adjusted() + 1 + scale, scale, 1), scale)


assert as_decimal(INTEGER).precision == len(str(2**63 - 1))

"""The built-in functions: their types and their plain-Python meaning.

Arguments are never missing here: the evaluator answers *missing* before it calls. A function answers None where it has
no result (division by zero, text that is not a number); `vectorfunctions.py` does the same for columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Decimal,
    InvalidOperation,
    localcontext,
)
from typing import Any

from penstock.expr import digests, exact, times
from penstock.expr.patterns import extract, matches, search
from penstock.schema import BINARY, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Array, Type
from penstock.values import read_binary, read_date, read_number, read_timestamp, text_of

NUMBER = "number"
ANY = "any"
PLAIN = "number, text or truth"
TIME = "date or time"
DECIMAL = "DECIMAL"
LITERAL_STRING = "literal text"
LITERAL_INTEGER = "literal integer"
PATTERN = "pattern"
UNIT, PART, MODE = "unit", "part", "mode"
SHAPE, ZONE = "shape", "zone"
Kind = Type | str | tuple[Type, ...]

INTEGER_TEXT = r"[+-]?[0-9]+"
DOUBLE_TEXT = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_MODES = {
    "half_up": ROUND_HALF_UP, "half_even": ROUND_HALF_EVEN, "floor": ROUND_FLOOR, "ceiling": ROUND_CEILING,
    "down": ROUND_DOWN, "up": ROUND_UP,
}  # fmt: skip
CHOICES: dict[Kind, tuple[str, ...]] = {UNIT: times.UNITS, PART: times.PARTS, MODE: tuple(_MODES)}
"""The words that some arguments may be."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives; a tuple is a choice of types.

    `result` NUMBER, ANY, TIME and DECIMAL depend on the arguments: `results.py` says how.
    """

    arguments: tuple[Kind, ...]
    result: Kind
    meaning: Callable[..., Any]
    repeats: bool = False
    optional: int = 0


def integer(value: int) -> int | None:
    return value if _SMALLEST <= value <= _LARGEST else None


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _arithmetic(
    operation: Callable[[Any, Any], Any], of_decimals: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            return integer(operation(left, right))
        if exact.is_exact(left, right):
            return of_decimals(left, right)
        try:
            return finite(operation(float(left), float(right)))
        except OverflowError:
            return None

    return apply


def _subtract(left: Any, right: Any) -> Any:
    """Days between dates, seconds between instants."""
    if isinstance(left, datetime):
        passed = left - right
        return Decimal((passed.days * 86_400 + passed.seconds) * 10**6 + passed.microseconds).scaleb(-6)
    if isinstance(left, date):
        return (left - right).days
    return _difference(left, right)


_difference = _arithmetic(lambda left, right: left - right, exact.subtract)


def _divide(left: Any, right: Any) -> Any:
    if exact.is_exact(left, right):
        return exact.divide(left, right)
    return None if right == 0 else finite(float(left) / float(right))


def _modulo(left: int, right: int) -> int | None:
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _absolute(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.copy_abs()  # `abs` rounds to the digits of Python's context
    return integer(abs(value)) if isinstance(value, int) else abs(value)


def _round(value: Any, digits: int, mode: str = "half_up") -> Any:
    if isinstance(value, Decimal):
        return exact.to_scale(value, digits, _MODES[mode])
    with localcontext() as context:
        context.prec = 400
        return float(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), rounding=_MODES[mode])) + 0.0


def _to_string(value: Any, digits: int | None = None) -> str | None:
    if not isinstance(value, float):
        return text_of(value)
    assert digits is not None
    try:
        with localcontext() as context:
            context.prec = 38
            fixed = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    except InvalidOperation:
        return None
    return f"{abs(fixed) if fixed == 0 else fixed:f}"


def _to_integer(value: Any) -> int | None:
    if isinstance(value, str):
        return integer(int(value)) if re.fullmatch(INTEGER_TEXT, value) and len(value) < 40 else None
    return integer(int(value))


def _to_double(value: Any) -> float | None:
    if isinstance(value, str) and not re.fullmatch(DOUBLE_TEXT, value):
        return None
    return finite(float(value))


def _to_decimal(value: Any, precision: int, scale: int) -> Decimal | None:
    if isinstance(value, float):
        value = repr(value)
    number = read_number(value) if isinstance(value, str) else Decimal(value)
    return None if number is None else exact.converted(number, precision, scale)


def _to_date(value: Any, zone: str | None = None) -> date | None:
    if isinstance(value, str):
        return read_date(value)
    seen = times.local(value, zone)
    return None if seen is None else seen.date()


def _to_timestamp(value: Any) -> datetime | None:
    if isinstance(value, str):
        return read_timestamp(value)
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _text(meaning: Callable[..., Any], *more: Kind, result: Kind = STRING) -> Signature:
    return Signature((STRING, *more), result, meaning)


_NUMBERS: tuple[Kind, ...] = (NUMBER, NUMBER)
FUNCTIONS: dict[str, Signature] = {
    "add": Signature(_NUMBERS, NUMBER, _arithmetic(lambda left, right: left + right, exact.add)),
    "subtract": Signature(_NUMBERS, NUMBER, _subtract),
    "multiply": Signature(_NUMBERS, NUMBER, _arithmetic(lambda left, right: left * right, exact.multiply)),
    "divide": Signature(_NUMBERS, NUMBER, _divide),
    "modulo": Signature((INTEGER, INTEGER), INTEGER, _modulo),
    "absolute": Signature((NUMBER,), NUMBER, _absolute),
    "round": Signature((NUMBER, LITERAL_INTEGER, MODE), NUMBER, _round, optional=1),
    "concat": Signature((STRING,), STRING, lambda *parts: "".join(parts), repeats=True),
    "upper": _text(str.upper),
    "lower": _text(str.lower),
    "trim": _text(lambda text: text.strip(" ")),
    "length": _text(len, result=INTEGER),
    "substring": _text(lambda text, start, count: text[start : start + count], LITERAL_INTEGER, LITERAL_INTEGER),
    "contains": _text(lambda text, part: part in text, STRING, result=BOOLEAN),
    "starts_with": _text(str.startswith, STRING, result=BOOLEAN),
    "ends_with": _text(str.endswith, STRING, result=BOOLEAN),
    "replace": _text(str.replace, LITERAL_STRING, STRING),
    "matches": _text(matches, PATTERN, result=BOOLEAN),
    "search": _text(search, PATTERN, result=BOOLEAN),
    "extract": _text(extract, PATTERN),
    "split": _text(str.split, LITERAL_STRING, result=Array(STRING)),
    "join": Signature((Array(STRING), LITERAL_STRING), STRING,
                      lambda parts, separator: separator.join(part for part in parts if part is not None)),
    "size": Signature((Array(ANY),), INTEGER, len),  # type: ignore[arg-type]
    "to_string": Signature((ANY, LITERAL_INTEGER), STRING, _to_string, optional=1),
    "to_integer": Signature((PLAIN,), INTEGER, _to_integer),
    "to_double": Signature((PLAIN,), DOUBLE, _to_double),
    "to_decimal": Signature((PLAIN, LITERAL_INTEGER, LITERAL_INTEGER), DECIMAL, _to_decimal),
    "to_date": Signature(((STRING, TIMESTAMP), ZONE), DATE, _to_date, optional=1),
    "to_timestamp": Signature(((STRING, DATE),), TIMESTAMP, _to_timestamp),
    "to_binary": _text(read_binary, result=BINARY),
    "parse_date": _text(times.parse_date, SHAPE, result=DATE),
    "parse_timestamp": Signature((STRING, SHAPE, ZONE), TIMESTAMP, times.parse_timestamp, optional=1),
    "format_time": Signature((TIME, SHAPE, ZONE), STRING, times.format_time, optional=1),
    "part": Signature((TIME, PART, ZONE), INTEGER, times.part, optional=1),
    "shift": Signature((TIME, INTEGER, UNIT), TIME, times.shift),
    "difference": Signature((TIME, TIME, UNIT), INTEGER, times.difference),
    "truncate": Signature((TIME, UNIT, ZONE), TIME, times.truncate, optional=1),
    "sha256": Signature(((STRING, BINARY),), STRING, digests.sha256),
    "xxh64": Signature(((STRING, BINARY),), INTEGER, digests.xxh64),
    "mask": Signature((STRING, LITERAL_INTEGER, LITERAL_STRING), STRING, digests.mask, optional=1),
    "uuid": Signature((STRING,), STRING, digests.name_of, repeats=True),
    "coalesce": Signature((ANY,), ANY, lambda *values: next((v for v in values if v is not None), None), repeats=True),
}  # fmt: skip

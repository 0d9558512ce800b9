"""The built-in functions: their types and their plain-Python meaning.

Arguments are never missing here: the evaluator answers *missing* before it calls. A function answers None where
it has no result (division by zero, text that is not a number), and Spark does the same.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any

import regex  # type: ignore[import-untyped]

from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Array, Type

NUMBER = "number"
ANY = "any"
LITERAL_STRING = "literal text"
LITERAL_INTEGER = "literal integer"
PATTERN = "pattern"
Kind = Type | str

INTEGER_TEXT = r"[+-]?[0-9]+"
DOUBLE_TEXT = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives. `result` NUMBER: BIGINT of integers, else DOUBLE; ANY: the arguments' type."""

    arguments: tuple[Kind, ...]
    result: Kind
    meaning: Callable[..., Any]
    repeats: bool = False
    optional: int = 0


def integer(value: int) -> int | None:
    return value if _SMALLEST <= value <= _LARGEST else None


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _arithmetic(exact: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            return integer(exact(left, right))
        try:
            return finite(exact(float(left), float(right)))
        except OverflowError:
            return None

    return apply


def _divide(left: Any, right: Any) -> float | None:
    return None if right == 0 else finite(float(left) / float(right))


def _modulo(left: int, right: int) -> int | None:
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _absolute(value: Any) -> Any:
    return integer(abs(value)) if isinstance(value, int) else abs(value)


def _round(value: float, digits: int) -> float | None:
    with localcontext() as context:
        context.prec = 400
        return float(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)) + 0.0


def _to_string(value: Any, digits: int | None = None) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        assert digits is not None
        try:
            with localcontext() as context:
                context.prec = 38
                fixed = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
        except InvalidOperation:
            return None
        return f"{abs(fixed) if fixed == 0 else fixed:f}"
    return str(value)


def _to_integer(value: Any) -> int | None:
    if isinstance(value, str):
        return integer(int(value)) if regex.fullmatch(INTEGER_TEXT, value) and len(value) < 40 else None
    return integer(int(value))


def _to_double(value: Any) -> float | None:
    if isinstance(value, str) and not regex.fullmatch(DOUBLE_TEXT, value):
        return None
    return finite(float(value))


def search(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


def matches(text: str, pattern: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


def _extract(text: str, pattern: str) -> str | None:
    found = _compiled(pattern).search(text)
    return found.group(1) if found else None


@functools.cache
def _compiled(pattern: str) -> Any:
    return regex.compile(python_pattern(pattern))


def groups(pattern: str) -> int:
    return int(_compiled(pattern).groups)


def python_pattern(pattern: str) -> str:
    """An I-Regexp (RFC 9485) in the syntax on which Python's `regex` and Java agree."""
    return "".join(_REWRITTEN[in_class].get(part, part) for part, in_class in _parts(pattern))


def has_anchor(pattern: str) -> bool:
    """Whether ^ or $ stands where other dialects see an anchor, and I-Regexp an ordinary character."""
    return any(part in ("^", "$") and not in_class for part, in_class in _parts(pattern))


_REWRITTEN = ({".": r"[^\n\r]", "$": r"(?![\s\S])"}, {"&": r"\&", "|": r"\|", "~": r"\~"})


def _parts(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each character or escape, and whether it stands in a character class."""
    in_class = False
    for part in regex.findall(r"(?s)\\.|.", pattern):
        yield part, in_class and part != "]"
        in_class = part == "[" or (in_class and part != "]")


def _text(meaning: Callable[..., Any], *more: Kind, result: Kind = STRING) -> Signature:
    return Signature((STRING, *more), result, meaning)


_NUMBERS: tuple[Kind, ...] = (NUMBER, NUMBER)
FUNCTIONS: dict[str, Signature] = {
    "add": Signature(_NUMBERS, NUMBER, _arithmetic(lambda left, right: left + right)),
    "subtract": Signature(_NUMBERS, NUMBER, _arithmetic(lambda left, right: left - right)),
    "multiply": Signature(_NUMBERS, NUMBER, _arithmetic(lambda left, right: left * right)),
    "divide": Signature(_NUMBERS, DOUBLE, _divide),
    "modulo": Signature((INTEGER, INTEGER), INTEGER, _modulo),
    "absolute": Signature((NUMBER,), NUMBER, _absolute),
    "round": Signature((DOUBLE, LITERAL_INTEGER), DOUBLE, _round),
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
    "extract": _text(_extract, PATTERN),
    "split": _text(str.split, LITERAL_STRING, result=Array(STRING)),
    "join": Signature((Array(STRING), LITERAL_STRING), STRING,
                      lambda parts, separator: separator.join(part for part in parts if part is not None)),
    "size": Signature((Array(ANY),), INTEGER, len),  # type: ignore[arg-type]
    "to_string": Signature((ANY, LITERAL_INTEGER), STRING, _to_string, optional=1),
    "to_integer": Signature((ANY,), INTEGER, _to_integer),
    "to_double": Signature((ANY,), DOUBLE, _to_double),
    "coalesce": Signature((ANY,), ANY, lambda *values: next((v for v in values if v is not None), None), repeats=True),
}  # fmt: skip

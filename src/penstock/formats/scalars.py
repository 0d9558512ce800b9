"""Single values written as plain text, in XML and CSV."""

from __future__ import annotations

import math
import re
from typing import Any

from penstock import values
from penstock.formats.base import WrongValue
from penstock.schema import BINARY, BOOLEAN, DOUBLE, INTEGER, STRING, Scalar
from penstock.values import text_of

SMALLEST, LARGEST = -(2**63), 2**63 - 1
_MOST_DIGITS = 19
_INTEGER = re.compile(r"([+-]?)0*([0-9]+)", re.ASCII)
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_SPACES = " \t\r\n"


def in_range(digits: str) -> int | None:
    """A signed 64-bit integer from its digits; the length comes first because int() refuses long ones."""
    if len(digits.lstrip("-")) > _MOST_DIGITS:
        return None
    value = int(digits)
    return value if SMALLEST <= value <= LARGEST else None


def parse_scalar(text: str, kind: Scalar, path: str) -> Any:
    """The value, or WrongValue. Spaces around it do not count, nor inside base64; text is kept as it is."""
    if kind == STRING:
        return text
    word = text.strip(_SPACES)
    value: Any = None
    if kind == INTEGER:
        found = _INTEGER.fullmatch(word)
        value = in_range(found[1].replace("+", "") + found[2]) if found else None
    elif kind == DOUBLE:
        number = float(word) if _DOUBLE.fullmatch(word) else math.inf
        value = number if math.isfinite(number) else None
    elif kind == BOOLEAN:
        value = {"true": True, "false": False}.get(word)
    else:
        value = values.read("".join(word.split()) if kind == BINARY else word, kind)
    if value is None:
        raise WrongValue(path, f'"{text}"', kind)
    return value


def is_missing(value: Any) -> bool:
    """No format can carry NaN or an infinity: they are written as nulls are."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def write_scalar(value: Any) -> str:
    return text_of(value)

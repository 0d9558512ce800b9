"""What JSON text means as a VARIANT: the last of equal keys counts, and numbers are those of Spark's VARIANT.

A whole number of up to 38 digits is exact, however it is written: 1.0 and 1e0 are 1. Any other is a double, which must
be finite, and becomes whole if it has no fraction and needs no exponent.
"""

from __future__ import annotations

import json
import math
import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

from penstock.formats.base import TooLarge, WrongValue
from penstock.formats.limits import MAX_VARIANT_BYTES, MAX_VARIANT_KEY
from penstock.schema import VARIANT

_MOST_DIGITS = 38
_PRECISE = Context(prec=1_000_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_LONGEST_FRACTION = 16
"""Characters: 15 digits and the point are what every double keeps."""
_EXPONENT_FROM = 1e16
_ODD_NUMBER = re.compile(
    rb"(?:^|[\[:,\s])-?(?:[0-9.]+[eE]|[0-9]{%d}|(?=[0-9]+\.)[0-9.]{%d})" % (_MOST_DIGITS + 1, _LONGEST_FRACTION + 1)
)
_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?[0-9][-+.0-9eE]*', re.DOTALL)


def read(text: str, path: str) -> Any:
    """The plain Python value."""

    def number(written: str) -> int | float:
        value = _number(written)
        if value is None:
            raise WrongValue(path, written, VARIANT)
        return value

    def checked(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if any(len(key.encode("utf-16-le")) > 2 * MAX_VARIANT_KEY for key, _ in members):
            raise TooLarge(f"field '{path}' has a key of more than {MAX_VARIANT_KEY:,} characters inside")
        return dict(members)

    size = len(text) if text.isascii() else len(text.encode())
    if size > MAX_VARIANT_BYTES:
        raise TooLarge(f"field '{path}' has {size:,} bytes, and a VARIANT at most {MAX_VARIANT_BYTES:,}")
    pairs = checked if size > MAX_VARIANT_KEY else None
    return json.loads(text, parse_int=number, parse_float=number, object_pairs_hook=pairs)


def plain(raw: bytes) -> bytes:
    """The same value, with every number written so that Spark takes it for what it is."""
    return _STRING_OR_NUMBER.sub(_plain, raw) if _ODD_NUMBER.search(raw) else raw


def _plain(found: re.Match[bytes]) -> bytes:
    written = found[0]
    if written.startswith(b'"') or not _ODD_NUMBER.match(written):
        return written
    value = _number(written.decode())
    return written if value is None else _digits(value).encode()


def _digits(value: int | float) -> str:
    """Spark takes a fraction for a decimal of up to 38 places, and writes just its digits; Java's for a double vary."""
    text = repr(value)
    if "e-" not in text:
        return text
    plain = format(Decimal(text), "f")
    return plain if len(plain.partition(".")[2]) <= _MOST_DIGITS else text


def _number(text: str) -> int | float | None:
    if len(text) <= _MOST_DIGITS and text.lstrip("-").isdigit():
        return int(text)
    whole = _whole(text)
    if whole is not None:
        return whole
    rounded = float(text)
    if rounded.is_integer() and abs(rounded) < _EXPONENT_FROM:
        return int(rounded)
    return rounded if math.isfinite(rounded) else None


def _whole(text: str) -> int | None:
    """The number, if it is whole and can be written with so many digits."""
    number = _PRECISE.create_decimal(text).normalize(_PRECISE)
    _, digits, exponent = number.as_tuple()
    fits = isinstance(exponent, int) and exponent >= 0 and len(digits) + exponent <= _MOST_DIGITS
    return int(number) if fits else None

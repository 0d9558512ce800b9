"""Dates, instants, exact numbers and bytes: how they are written, and which values their types have.

A DATE is a `datetime.date`, a TIMESTAMP a `datetime.datetime` in UTC, a DECIMAL a `decimal.Decimal` with exactly the
decimals of its type, a BINARY `bytes`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Any

from penstock.schema import BINARY, DATE, TIMESTAMP, Array, DecimalType, Map, Struct, Type

MOST_DIGITS = 38
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):?([0-5][0-9]))"
)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LOSSLESS = Context(prec=2 * MOST_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])
_ROUNDING = Context(prec=1_000_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation, Overflow])


def read(text: str, kind: Type) -> Any:
    """The value that a text means as one of these types; None if it means none."""
    if kind == DATE:
        return read_date(text)
    if kind == TIMESTAMP:
        return read_timestamp(text)
    if kind == BINARY:
        return read_binary(text)
    assert isinstance(kind, DecimalType)
    number = read_number(text)
    return None if number is None else exactly(number, kind)


def read_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def read_timestamp(text: str) -> datetime | None:
    """RFC 3339, with its zone; a fraction is rounded to microseconds."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    day, time, fraction, sign, hours, minutes = found.groups()
    micros = 0
    if fraction is not None:
        micros = int(fraction[:6].ljust(6, "0")) + (fraction[6:7] >= "5")
    offset = timedelta(hours=int(hours), minutes=int(minutes)) if sign else timedelta()
    try:
        local = datetime.fromisoformat(f"{day}T{time}+00:00") + timedelta(microseconds=micros)
        return local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        return None


def read_number(text: str) -> Decimal | None:
    """A number that is written out, with all its digits."""
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:  # an exponent beyond everything
        return None


def read_binary(text: str) -> bytes | None:
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


def text_of(value: Any) -> str:
    """The text of any single value, as every format writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)


def as_json(value: Any) -> str:
    """For `json.dumps`: these values as texts, which are read back as what they were."""
    if isinstance(value, (date, Decimal, bytes)):
        return text_of(value)
    raise TypeError(f"{type(value).__name__} is no value of a message")


def exactly(number: Decimal, kind: DecimalType) -> Decimal | None:
    """The number with the decimals of its type; None if the type cannot hold it as it is."""
    if not number.is_finite() or (number and number.adjusted() >= kind.precision - kind.scale):
        return None
    try:
        return _unsigned_zero(number.quantize(Decimal(1).scaleb(-kind.scale), context=_LOSSLESS))
    except (Inexact, InvalidOperation):
        return None


def rounded(number: Decimal, scale: int, rounding: str) -> Decimal:
    """The number with so many decimals, however many digits stand before them."""
    return _unsigned_zero(number.quantize(Decimal(1).scaleb(-scale), rounding, _ROUNDING))


def _unsigned_zero(number: Decimal) -> Decimal:
    return number if number else number.copy_abs()


def canonical(value: Any, kind: Type) -> Any:
    """A value that somebody's Python made, as its type has it: a DECIMAL with its decimals, a TIMESTAMP in UTC."""
    match kind:
        case _ if value is None:
            return None
        case DecimalType() if isinstance(value, (Decimal, int)) and not isinstance(value, bool):
            found = exactly(Decimal(value), kind)
            return value if found is None else found
        case Array(element) if isinstance(value, (list, tuple)):
            return [canonical(inner, element) for inner in value]
        case Map(inner_kind) if isinstance(value, Mapping):
            return {name: canonical(inner, inner_kind) for name, inner in value.items()}
        case Struct(fields) if isinstance(value, Mapping):
            return {**value, **{name: canonical(value.get(name), inner) for name, inner in fields if name in value}}
    if kind == TIMESTAMP and isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value

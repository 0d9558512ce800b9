"""Constants in expressions: Python values, and text with the name of its type before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

from penstock.errors import BadExpression
from penstock.expr import exact
from penstock.expr.nodes import Value
from penstock.values import MOST_DIGITS, read_binary, read_date, read_number, read_timestamp

_KINDS = (bool, int, float, str, date, Decimal, bytes)


def is_constant(value: object) -> bool:
    return value is None or isinstance(value, _KINDS)


def constant(value: Value) -> Value:
    """The value as expressions have it; an error if it leaves open what it means."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadExpression(f"{value!r} has no zone, so it is no instant",
                                fix="give it one: datetime(..., tzinfo=UTC)")  # fmt: skip
        return value.astimezone(UTC)
    if isinstance(value, Decimal):
        found = exact.as_literal(value)
        if found is None:
            raise BadExpression(f"{value!r} is no number of at most {MOST_DIGITS} digits")
        return found
    return value


def _number(text: str) -> Decimal | None:
    number = read_number(text)
    return None if number is None else exact.as_literal(number)


TYPED: dict[str, tuple[Callable[[str], Value], str]] = {
    "DATE": (read_date, "2024-01-31"),
    "TIMESTAMP": (read_timestamp, "2024-01-31T10:00:00Z"),
    "DECIMAL": (_number, "12.30"),
    "BINARY": (read_binary, "aGk="),
}
"""How the text behind each word is read, and what it looks like."""

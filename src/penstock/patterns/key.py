"""Keys of the patterns that remember: what may be one, and how it reads as text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import NULL, type_of
from penstock.patterns.node import DEAD
from penstock.schema import DOUBLE, VARIANT, Scalar, Struct, Type
from penstock.values import text_of

FILTER, FLUSH, DISCARD, HOLD = "filter", "flush", "discard", "hold"
INVALID_KEY = "InvalidKey"
NO_VALUE = "the key has no value"
NO_PARENT = "the message is not a part of a split message"


def key_tuple(of: object) -> tuple[Expr, ...]:
    """One key or several; text is an expression, as in a condition. None is no key at all."""
    if of is None:
        return ()
    return tuple(condition(part) for part in of) if isinstance(of, (list, tuple)) else (condition(of),)


def identifies(kind: Type) -> bool:
    """Whether values of a type may be keys: what is equal on every machine and in every run, so no DOUBLE."""
    return isinstance(kind, Scalar) and kind not in (DOUBLE, VARIANT, NULL)


def check_key(key: tuple[Expr, ...], body: Struct) -> None:
    for part in key:
        kind = type_of(part, body)
        if not identifies(kind):
            said = "is never there" if kind == NULL else f"is {kind}"
            fix = "round it: to_integer(...), or to_string(..., 2)" if kind == DOUBLE else None
            raise TypeMismatch(f"a key is one value, and no DOUBLE, but {to_text(part)} {said}", fix=fix)


def key_text(values: tuple[Any, ...]) -> str:
    """How a key reads in headers and errors: a single value as it is, several as a JSON array."""
    return text_of(values[0]) if len(values) == 1 else f"[{','.join(map(_json, values))}]"


def _json(value: Any) -> str:
    if isinstance(value, (bool, int, Decimal)):
        return text_of(value)
    return json.dumps(text_of(value), ensure_ascii=False)


def keys_text(key: tuple[Expr, ...]) -> str:
    return ", ".join(map(to_text, key))


def check_option(what: str, value: object, *allowed: str) -> str:
    if value not in allowed:
        raise BadRoute(f"{what}={value!r} is not a policy", fix=f"write one of {', '.join(map(repr, allowed))}")
    return str(value)


def check_invalid(value: object) -> str:
    return check_option("invalid", value, DEAD, FILTER)


def check_stop(value: object) -> str | None:
    return None if value is None else check_option("on_stop", value, FLUSH, DISCARD, HOLD)


def check_number(what: str, value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadRoute(f"{what}={value!r} is not a whole number from {least} up")
    return value

"""The type of a function's result, from the types of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from penstock.errors import TypeMismatch
from penstock.expr import exact
from penstock.expr.functions import ANY, DECIMAL, FUNCTIONS, NUMBER, TIME
from penstock.schema import DATE, DOUBLE, INTEGER, TIMESTAMP, DecimalType, Scalar, Type

NULL = Scalar("NULL")


def result_of(name: str, kinds: Sequence[Type], literals: Sequence[Any]) -> Type:
    """`literals` has the values of arguments that are written in the route, None for the others."""
    result = FUNCTIONS[name].result
    if result == NUMBER:
        return _number(name, kinds, literals)
    if result == TIME:
        return kinds[0]
    if result == DECIMAL:
        return DecimalType(literals[1], literals[2])
    if result == ANY:
        return common(kinds)
    assert not isinstance(result, (str, tuple))
    return result


def _number(name: str, kinds: Sequence[Type], literals: Sequence[Any]) -> Type:
    if name == "subtract" and kinds[0] in (DATE, TIMESTAMP):
        return INTEGER if kinds[0] == DATE else exact.SECONDS
    numbers = [kind for kind in kinds[: 1 if name == "round" else None] if kind != NULL]
    if DOUBLE in numbers or not any(isinstance(kind, DecimalType) for kind in numbers):
        whole = name not in ("divide", "round") and DOUBLE not in numbers
        return INTEGER if whole else DOUBLE
    found = [exact.as_decimal(kind) for kind in numbers]
    match name:
        case "round":
            return exact.rounded_type(found[0], literals[1])
        case "absolute":
            return found[0]
    if len(found) < 2:
        return found[0]  # of nothing and something there is nothing
    rules = {"multiply": exact.product_type, "divide": exact.quotient_type}
    return rules.get(name, exact.sum_type)(*found)


def is_number(kind: Type) -> bool:
    return kind in (INTEGER, DOUBLE) or isinstance(kind, DecimalType)


def common(kinds: Sequence[Type]) -> Type:
    """The one type of several alternatives; integers widen to DECIMAL, and both to DOUBLE."""
    known = [kind for kind in kinds if kind != NULL]
    if not known:
        return NULL
    if all(map(is_number, known)):
        if DOUBLE in known or all(kind == INTEGER for kind in known):
            return DOUBLE if DOUBLE in known else INTEGER
        return reduce(exact.common_type, map(exact.as_decimal, known))
    if any(kind != known[0] for kind in known):
        raise TypeMismatch(f"the alternatives have different types: {', '.join(sorted(set(map(str, known))))}",
                           fix="convert them with to_string, to_integer or to_double")  # fmt: skip
    return known[0]

"""Simple conditions over a whole Arrow batch: what `evaluate` says, for many bodies at once.

Only what has one obvious meaning in both is here: fields, literals, comparisons, and their combinations. There is no
strict form: a comparison with something missing is false.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr import nodes
from penstock.expr.nodes import Expr, Field, Literal
from penstock.expr.types import literal_type
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, VARIANT, Struct, Type

_COMPARISONS: dict[str, Callable[[Any, Any], pa.Array]] = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal
}  # fmt: skip
_TEXT_TESTS: dict[str, Callable[[pa.Array, str], pa.Array]] = {
    "contains": pc.match_substring, "starts_with": pc.starts_with, "ends_with": pc.ends_with
}  # fmt: skip
_NUMBERS = (INTEGER, DOUBLE)


def is_vectorized(condition: Expr, body: Struct) -> bool:
    """Whether `evaluate_batch` takes this condition, which has a type and is bound to the schema."""

    def known(term: Expr) -> bool:
        return is_vectorized(term, body)

    match condition:
        case Field():
            return plain_type(condition, body) == BOOLEAN
        case nodes.Compare(_, left, right):
            kinds = plain_type(left, body), plain_type(right, body)
            one_family = kinds[0] == kinds[1] in (STRING, BOOLEAN) or all(kind in _NUMBERS for kind in kinds)
            return one_family and (isinstance(left, Field) or isinstance(right, Field))
        case nodes.And(terms) | nodes.Or(terms):
            return bool(terms) and all(map(known, terms))
        case nodes.Not(term):
            return known(term)
        case nodes.In(Field() as value, options):
            kind = plain_type(value, body)
            return kind in (STRING, INTEGER, DOUBLE) and all(literal_type(option) == kind for option in options)
        case nodes.Present(Field() as value):
            return plain_type(value, body) is not None
        case nodes.Call(name, (Field() as value, Literal(str()))) if name in _TEXT_TESTS:
            return plain_type(value, body) == STRING
        case nodes.Case(branches, Literal(int())):
            return all(known(test) and isinstance(value, Literal) for test, value in branches)
    return False


def plain_type(value: Expr, body: Struct) -> Type | None:
    """The type of a literal, or of a field that is reached by names of structs alone."""
    if isinstance(value, Literal):
        return literal_type(value.value)
    if not isinstance(value, Field) or value.root != nodes.BODY or not value.path:
        return None
    kind: Type | None = body
    for part in value.path:
        kind = kind.get(part) if isinstance(kind, Struct) and isinstance(part, str) else None
    return None if kind == VARIANT else kind


def evaluate_batch(condition: Expr, bodies: pa.StructArray) -> pa.Array:
    """True or false for every body, or the number of the case that applies; anything missing is false."""
    if isinstance(condition, nodes.Case):
        tests = [_truth(test, bodies) for test, _ in condition.branches]
        numbers = [pa.scalar(value.value, pa.int64()) for _, value in condition.branches]  # type: ignore[attr-defined]
        otherwise = pa.scalar(condition.otherwise.value, pa.int64())  # type: ignore[attr-defined]
        return pc.case_when(pc.make_struct(*tests), *numbers, otherwise)
    return _truth(condition, bodies)


def _truth(condition: Expr, bodies: pa.StructArray) -> pa.Array:
    return pc.fill_null(_evaluated(condition, bodies), False)


def _evaluated(condition: Expr, bodies: pa.StructArray) -> pa.Array:
    match condition:
        case Field(path):
            return pc.struct_field(bodies, list(path))
        case nodes.Compare(symbol, left, right):
            compared = _COMPARISONS[symbol](*_alike(_operand(left, bodies), _operand(right, bodies)))
            return pc.fill_null(compared, False)
        case nodes.And(terms):
            return reduce(pc.and_kleene, [_evaluated(term, bodies) for term in terms])
        case nodes.Or(terms):
            return reduce(pc.or_kleene, [_evaluated(term, bodies) for term in terms])
        case nodes.Not(term):
            return pc.invert(_truth(term, bodies))
        case nodes.In(value, options):
            found = _operand(value, bodies)
            # Null is in no set, and in Arrow -0.0 is not in the set of 0.0.
            if pa.types.is_floating(found.type):
                tests = [pc.equal(found, pa.scalar(option, found.type)) for option in options]
                return pc.fill_null(reduce(pc.or_, tests, pc.less(found, found)), False)
            return pc.is_in(found, pa.array(options, found.type))
        case nodes.Present(value):
            return pc.is_valid(_operand(value, bodies))
        case nodes.Call(name, (value, Literal(text))):
            return _TEXT_TESTS[name](_operand(value, bodies), str(text))
    raise AssertionError(f"{condition!r} is not vectorized")


def _operand(value: Expr, bodies: pa.StructArray) -> pa.Array | pa.Scalar:
    if isinstance(value, Literal):
        return pa.scalar(value.value)
    assert isinstance(value, Field)
    return pc.struct_field(bodies, list(value.path))


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Integers meet doubles as doubles, rounded as Python and Spark round them."""
    if pa.types.is_floating(left.type) == pa.types.is_floating(right.type):
        return left, right
    return pc.cast(left, pa.float64(), safe=False), pc.cast(right, pa.float64(), safe=False)

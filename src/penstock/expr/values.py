"""Simple values over a whole Arrow batch: what `evaluate` says, for many bodies at once.

Fields, literals, quotients, remainders and whole numbers of them: what keys are made of. What has no value is null.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.nodes import Call, Expr, Field, Literal
from penstock.expr.vectorized import plain_type
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Struct, Type

_NUMBERS = (INTEGER, DOUBLE)
_ENDS = (-(2.0**63), 2.0**63)


def value_type(value: Expr, body: Struct) -> Type | None:
    """The type of a value that `value_batch` can compute, bound to the schema; None if it cannot."""
    match value:
        case Field() | Literal():
            kind = plain_type(value, body)
            return kind if kind in (STRING, INTEGER, DOUBLE, BOOLEAN) else None
        case Call("divide", numbers) if all(value_type(number, body) in _NUMBERS for number in numbers):
            return DOUBLE
        case Call("modulo", numbers) if all(value_type(number, body) == INTEGER for number in numbers):
            return INTEGER
        case Call("to_integer", (number,)) if value_type(number, body) in _NUMBERS:
            return INTEGER
    return None


def value_batch(value: Expr, bodies: pa.StructArray) -> pa.Array:
    found = _computed(value, bodies)
    return pa.repeat(found, len(bodies)) if isinstance(found, pa.Scalar) else found


def _computed(value: Expr, bodies: pa.StructArray) -> pa.Array | pa.Scalar:
    match value:
        case Field(path):
            return pc.struct_field(bodies, list(path))
        case Literal(constant):
            return pa.scalar(constant)
        case Call("divide", (left, right)):
            return _finite(pc.divide(_double(_computed(left, bodies)), _not_zero(_double(_computed(right, bodies)))))
        case Call("modulo", (left, right)):
            return _remainder(_computed(left, bodies), _not_zero(_computed(right, bodies)))
        case Call("to_integer", (number,)):
            return _whole(_computed(number, bodies))
    raise AssertionError(f"{value!r} is not vectorized")


def _double(number: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    return pc.cast(number, pa.float64(), safe=False)


def _not_zero(number: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if isinstance(number, pa.Scalar):
        return number if number.as_py() else pa.scalar(None, number.type)
    return pc.if_else(pc.equal(number, 0), None, number)


def _finite(number: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    return pc.if_else(pc.is_finite(number), number, None)


def _whole(number: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if not pa.types.is_floating(number.type):
        return number
    fits = pc.and_(pc.greater_equal(number, _ENDS[0]), pc.less(number, _ENDS[1]))
    return pc.cast(pc.if_else(fits, pc.trunc(number), None), pa.int64(), safe=False)


def _remainder(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """With the sign of the dividend. Arrow has no remainder: a - b * (a / b), which it computes without rounding."""
    if isinstance(right, pa.Scalar) and right.as_py() == -1:
        return pc.multiply(left, 0)
    divisor = right if isinstance(right, pa.Scalar) else pc.if_else(pc.equal(right, -1), 1, right)
    return pc.subtract(left, pc.multiply(divisor, pc.divide(left, divisor)))

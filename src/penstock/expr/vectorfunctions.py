"""The built-in functions over Arrow columns: the same results as their plain meaning, for all rows at once.

Where Arrow means something else, or gives up, the plain meaning of `functions.py` answers row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.columnwise import Column, as_list, in_common, is_decimal, is_double, to_double
from penstock.expr.functions import FUNCTIONS
from penstock.expr.patterns import test_batch
from penstock.expr.results import result_of
from penstock.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Array,
    DecimalType,
    Type,
)
from penstock.valuetexts import value_texts

_ARROW: dict[Type, pa.DataType] = {
    STRING: pa.string(), INTEGER: pa.int64(), DOUBLE: pa.float64(), BOOLEAN: pa.bool_(), DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"), BINARY: pa.binary(),
    Array(STRING): pa.list_(pa.field("element", pa.string())),
}  # fmt: skip
_KINDS = {arrow: kind for kind, arrow in _ARROW.items()}
_MICROSECOND = Decimal("0.000001")
_ENDS = (-(2.0**63), 2.0**63)
_SHORT_NUMBER = "^[0-9]{1,18}$"
_ROUNDED_FAST = 2.0**40
_NEAR_HALF = 1e-3


class _NotByArrow(Exception):
    """Arrow has no answer for these columns, or another one than we want."""


def call(name: str, arguments: Sequence[Column], length: int) -> Column:
    """The value of a function of columns for every row; null where an argument or the result is missing."""
    if name != "coalesce" and any(pa.types.is_null(argument.type) for argument in arguments):
        return pa.scalar(None)
    by_arrow = _BY_ARROW.get(name)
    if by_arrow is not None:
        try:
            return by_arrow(*arguments)
        except (_NotByArrow, pa.ArrowInvalid):  # Arrow says so when an integer does not fit
            pass
    return _row_by_row(name, arguments, length)


def _row_by_row(name: str, arguments: Sequence[Column], length: int) -> pa.Array:
    meaning = FUNCTIONS[name].meaning
    rows = zip(*(as_list(argument, length) for argument in arguments), strict=True)
    values = [None if None in row else meaning(*row) for row in rows]
    return pa.array(values, _result(name, arguments))


def _result(name: str, arguments: Sequence[Column]) -> pa.DataType:
    literals = [argument.as_py() if isinstance(argument, pa.Scalar) else None for argument in arguments]
    kind = result_of(name, [_kind(argument.type) for argument in arguments], literals)
    return pa.decimal128(kind.precision, kind.scale) if isinstance(kind, DecimalType) else _ARROW[kind]


def _kind(arrow: pa.DataType) -> Type:
    if pa.types.is_decimal(arrow):
        return DecimalType(arrow.precision, arrow.scale)
    return Array(STRING) if pa.types.is_list(arrow) else _KINDS[arrow]


def _mixed(name: str, by_arrow: pa.Array, odd: Any, *arguments: Column) -> pa.Array:
    """What Arrow found, except for the odd rows, which are computed one by one."""
    if not odd.any():
        return by_arrow
    chosen = pa.array(odd)
    some = [argument if isinstance(argument, pa.Scalar) else argument.filter(chosen) for argument in arguments]
    return pc.replace_with_mask(by_arrow, chosen, _row_by_row(name, some, int(odd.sum())))


def _finite(number: Column) -> Column:
    return pc.if_else(pc.is_finite(number), number, pa.scalar(None, pa.float64()))


def _arithmetic(of_integers: Callable[..., Column], of_doubles: Callable[..., Column]) -> Callable[..., Column]:
    """Arrow gives exact results the types that `exact.py` does, and gives up beyond 38 digits."""

    def apply(left: Column, right: Column) -> Column:
        if is_double(left) or is_double(right):
            return _finite(of_doubles(to_double(left), to_double(right)))
        return of_integers(left, right)

    return apply


def _subtract(left: Column, right: Column) -> Column:
    if pa.types.is_date(left.type):
        return pc.subtract(*(pc.cast(pc.cast(side, pa.int32()), pa.int64()) for side in (left, right)))
    if pa.types.is_timestamp(left.type):
        micros = pc.subtract(*(pc.cast(side, pa.int64()) for side in (left, right)))
        return pc.cast(pc.multiply(pc.cast(micros, pa.decimal128(19, 0)), _MICROSECOND), pa.decimal128(18, 6))
    return _difference(left, right)


_difference = _arithmetic(pc.subtract_checked, pc.subtract)


def _divide(left: Column, right: Column) -> Column:
    if (is_decimal(left) or is_decimal(right)) and not (is_double(left) or is_double(right)):
        raise _NotByArrow
    return _finite(pc.divide(to_double(left), _not_zero(to_double(right))))


def _not_zero(number: Column) -> Column:
    return pc.if_else(pc.equal(number, 0), pa.scalar(None, number.type), number)


def _modulo(left: Column, right: Column) -> Column:
    """With the sign of the dividend. Arrow has no remainder: a - b * (a / b), which it computes without rounding."""
    divisor = _not_zero(right)
    divisor = pc.if_else(pc.equal(divisor, -1), 1, divisor)  # the smallest integer has no quotient by -1
    return pc.subtract(left, pc.multiply(divisor, pc.divide(left, divisor)))


def _round(value: Column, digits: pa.Scalar, *mode: pa.Scalar) -> Column:
    """Half up, of the decimal number that is written; those near a half are computed one by one."""
    if mode or isinstance(value, pa.Scalar) or digits.as_py() > 15 or is_decimal(value):
        raise _NotByArrow
    numbers = to_double(value).to_numpy(zero_copy_only=False)
    scale = 10.0 ** digits.as_py()
    sizes = np.abs(numbers) * scale
    whole = np.floor(sizes + 0.5)
    odd = (sizes >= _ROUNDED_FAST) | (np.abs(sizes - np.floor(sizes) - 0.5) < _NEAR_HALF)
    rounded = np.copysign(whole / scale, numbers) + 0.0
    known = value.is_null().to_numpy(zero_copy_only=False)
    return _mixed("round", pa.array(rounded, mask=known), odd & ~known, to_double(value), digits)


def _cased(name: str, of_ascii: Callable[..., Column]) -> Callable[..., Column]:
    def apply(text: Column) -> Column:
        if isinstance(text, pa.Scalar):
            raise _NotByArrow
        odd = ~pc.fill_null(pc.string_is_ascii(text), True).to_numpy(zero_copy_only=False)
        return _mixed(name, of_ascii(text), odd, text)

    return apply


def _with_constant(of_text: Callable[..., Column]) -> Callable[..., Column]:
    """Functions of a text and others that are the same for every row."""

    def apply(text: Column, *others: Column) -> Column:
        if not all(isinstance(other, pa.Scalar) and other.is_valid for other in others):
            raise _NotByArrow
        return of_text(text, *(other.as_py() for other in others))

    return apply


def _join(parts: Column, separator: str) -> Column:
    if isinstance(parts, pa.Scalar) or parts.flatten().null_count:
        raise _NotByArrow
    return pc.binary_join(parts, separator)


def _to_string(value: Column, *digits: Column) -> Column:
    if is_double(value) or isinstance(value, pa.Scalar):
        raise _NotByArrow
    return value_texts(value)


def _to_integer(value: Column) -> Column:
    if is_double(value):
        fits = pc.and_(pc.greater_equal(value, _ENDS[0]), pc.less(value, _ENDS[1]))
        return pc.cast(pc.if_else(fits, pc.trunc(value), pa.scalar(None, pa.float64())), pa.int64(), safe=False)
    if isinstance(value, pa.Scalar) or is_decimal(value):
        raise _NotByArrow
    if not pa.types.is_string(value.type):
        return pc.cast(value, pa.int64())
    plain = pc.match_substring_regex(value, _SHORT_NUMBER)
    numbers = pc.cast(pc.if_else(plain, value, pa.scalar(None, pa.string())), pa.int64())
    odd = ~pc.fill_null(plain, True).to_numpy(zero_copy_only=False)
    return _mixed("to_integer", numbers, odd, value)


def _to_double(value: Column) -> Column:
    if pa.types.is_string(value.type):
        raise _NotByArrow
    return to_double(pc.cast(value, pa.int64()) if pa.types.is_boolean(value.type) else value)


def _part(value: Column, name: pa.Scalar, *zone: pa.Scalar) -> Column:
    by_arrow = _PARTS.get(name.as_py())
    if zone or by_arrow is None:
        raise _NotByArrow
    return pc.cast(by_arrow(value), pa.int64())


def _truncate(value: Column, unit: pa.Scalar, *zone: pa.Scalar) -> Column:
    if zone or isinstance(value, pa.Scalar):
        raise _NotByArrow
    return pc.cast(pc.floor_temporal(value, unit=unit.as_py()), value.type)


_PARTS = {"year": pc.year, "quarter": pc.quarter, "month": pc.month, "week": pc.iso_week, "day": pc.day,
          "yearday": pc.day_of_year, "hour": pc.hour, "minute": pc.minute, "second": pc.second}  # fmt: skip


_BY_ARROW: dict[str, Callable[..., Column]] = {
    "add": _arithmetic(pc.add_checked, pc.add),
    "subtract": _subtract,
    "multiply": _arithmetic(pc.multiply_checked, pc.multiply),
    "divide": _divide,
    "modulo": _modulo,
    "absolute": pc.abs_checked,
    "round": _round,
    "concat": lambda *texts: pc.binary_join_element_wise(*texts, ""),
    "upper": _cased("upper", pc.ascii_upper),
    "lower": _cased("lower", pc.ascii_lower),
    "trim": lambda text: pc.utf8_trim(text, characters=" "),
    "length": lambda text: pc.cast(pc.utf8_length(text), pa.int64()),
    "substring": _with_constant(lambda text, start, count: pc.utf8_slice_codeunits(text, start, start + count)),
    "contains": _with_constant(pc.match_substring),
    "starts_with": _with_constant(pc.starts_with),
    "ends_with": _with_constant(pc.ends_with),
    "matches": _with_constant(partial(test_batch, "matches")),
    "search": _with_constant(partial(test_batch, "search")),
    "replace": _with_constant(pc.replace_substring),
    "split": _with_constant(pc.split_pattern),
    "join": _with_constant(_join),
    "size": lambda parts: pc.cast(pc.list_value_length(parts), pa.int64()),
    "to_string": _to_string,
    "to_integer": _to_integer,
    "to_double": _to_double,
    "part": _part,
    "truncate": _truncate,
    "coalesce": lambda *columns: pc.coalesce(*in_common(columns)),
}

"""Columns of values for `vectorized.py`: Arrow arrays, or one scalar that stands for every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = Any
"""A `pyarrow.Array`, or a `pyarrow.Scalar` that is the value of every row."""
Numbers: TypeAlias = npt.NDArray[Any]
_EXACT_DIGITS = 15
"""Whole numbers and powers of ten of so many digits are doubles themselves."""


def as_array(column: Column, length: int) -> pa.Array:
    if not isinstance(column, pa.Scalar):
        return column
    return pa.repeat(column, length) if length else pa.nulls(0, column.type)  # Arrow repeats no list zero times


def as_list(column: Column, length: int) -> list[Any]:
    return [column.as_py()] * length if isinstance(column, pa.Scalar) else column.to_pylist()


def elements_of(lists: pa.ListArray) -> tuple[Numbers, pa.Array]:
    """The elements of lists, and the row that each is of. Arrow lets what is null have elements: they do not count."""
    if lists.null_count:
        lists = lists.take(pa.array(np.arange(len(lists))))
    return pc.list_parent_indices(lists).to_numpy(), lists.flatten()


def is_double(column: Column) -> bool:
    return bool(pa.types.is_floating(column.type))


def is_decimal(column: Column) -> bool:
    return bool(pa.types.is_decimal(column.type))


def to_double(column: Column) -> Column:
    """Rounded as Python and Spark round large integers."""
    if is_decimal(column):
        return _decimal_to_double(column)
    return column if is_double(column) else pc.cast(column, pa.float64(), safe=False)


def _decimal_to_double(column: Column) -> Column:
    """The nearest double, which Arrow's own cast misses. One division rounds once: digits and power must be exact."""
    if isinstance(column, pa.Scalar):
        value = column.as_py()
        return pa.scalar(None if value is None else float(value), pa.float64())
    kind, words = column.type, np.frombuffer(column.buffers()[1] or b"", np.int64)
    if kind.precision <= _EXACT_DIGITS and kind.bit_width == 128:
        digits = words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
        return pa.array(digits / 10.0**kind.scale, mask=column.is_null().to_numpy(zero_copy_only=False))
    return pa.array([None if value is None else float(value) for value in column.to_pylist()], pa.float64())


def alike(left: Column, right: Column) -> tuple[Column, Column]:
    """Two columns that are compared: exact numbers meet doubles as doubles."""
    if is_double(left) != is_double(right):
        return to_double(left), to_double(right)
    if left.type != right.type and (is_decimal(left) or is_decimal(right)):
        wide = pa.decimal256(76, max(column.type.scale for column in (left, right) if is_decimal(column)))
        return pc.cast(left, wide), pc.cast(right, wide)
    return left, right


def in_common(columns: Sequence[Column]) -> list[Column]:
    """Alternatives with the one type they have in common; what is never there takes the type of the others."""
    kinds = [column.type for column in columns if not pa.types.is_null(column.type)]
    if not kinds:
        return list(columns)
    kind = pa.float64() if any(map(pa.types.is_floating, kinds)) else kinds[0]
    if pa.types.is_decimal(kind):  # all have the same decimals, but literals fewer digits
        kind = max(kinds, key=lambda kind: int(kind.precision))
    return [column if column.type == kind else pc.cast(column, kind, safe=False) for column in columns]

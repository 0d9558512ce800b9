"""Reduce each group of a column to one value (sum, minimum, first, ...); a group is a range of neighbouring rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.exact import FEWEST_DECIMALS, held, quotient
from penstock.kernel.state.keys import Flags, Numbers, ranges

SUM, MIN, MAX, FIRST, LAST = "sum", "min", "max", "first", "last"


def reduced(operation: str, values: pa.Array, starts: Numbers, ends: Numbers) -> pa.Array:
    """One value per group; nulls are left out, except that FIRST and LAST take the value of that row."""
    if operation == FIRST:
        return values.take(pa.array(starts))
    if operation == LAST:
        return values.take(pa.array(ends - 1))
    rows = ranges(starts, ends - starts)
    groups = np.repeat(np.arange(len(starts)), ends - starts)
    present = _flags(pc.is_valid(values))[rows]
    rows, groups = rows[present], groups[present]
    if operation == SUM and pa.types.is_integer(values.type):
        return _whole_sums(values, rows, groups, len(starts))
    chosen = values.take(pa.array(rows))
    counted = pa.table({"group": groups, "value": chosen}).group_by("group", use_threads=False)
    found = counted.aggregate([("value", operation)])
    return _spread(found.column(f"value_{operation}").combine_chunks(), found.column("group").to_numpy(), len(starts))


def last_present(values: pa.Array, starts: Numbers, ends: Numbers) -> pa.Array:
    """The last value of each group that is not null."""
    rows = ranges(starts, ends - starts)
    groups = np.repeat(np.arange(len(starts)), ends - starts)
    present = _flags(pc.is_valid(values))[rows]
    last = np.full(len(starts), -1)
    last[groups[present]] = rows[present]  # rows come in order: the last one written stays
    return values.take(pa.array(last, mask=last < 0))


def lists(values: pa.Array, starts: Numbers, ends: Numbers) -> pa.ListArray:
    """The values of each group as a list."""
    offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(ranges(starts, ends - starts))))


def rough(name: str) -> str:
    """The name of the column with the same whole-number sum as a double, which is inexact but cannot wrap around."""
    return f"{name}_rough"


def overflows(sums: pa.Array, roughly: pa.Array) -> Flags:
    """Which sums do not fit into 64 bits: they are far away from the same sums of doubles."""
    exact = sums.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
    far: Flags = np.abs(roughly.fill_null(0.0).to_numpy() - exact) > 2.0**62
    return far


def too_long(values: pa.Array) -> Flags:
    """Which exact numbers have more digits than a DECIMAL can have."""
    try:
        values.cast(pa.decimal128(38, values.type.scale))
        return np.zeros(len(values), bool)
    except pa.ArrowInvalid:
        return np.array([value is not None and held(value) is None for value in values.to_pylist()])


def exact_means(totals: pa.Array, counts: pa.Array) -> pa.Array:
    pairs = zip(totals.to_pylist(), counts.to_pylist(), strict=True)
    means = [None if total is None else quotient(total, count) for total, count in pairs]
    return pa.array(means, pa.decimal256(76, max(totals.type.scale, FEWEST_DECIMALS)))


def _whole_sums(values: pa.Array, rows: Numbers, groups: Numbers, count: int) -> pa.Array:
    sums, seen = np.zeros(count, np.int64), np.zeros(count, bool)
    with np.errstate(over="ignore"):
        np.add.at(sums, groups, values.fill_null(0).to_numpy()[rows])
    seen[groups] = True
    return pa.array(sums, mask=~seen)


def _spread(values: pa.Array, groups: Numbers, count: int) -> pa.Array:
    places = np.full(count, -1)
    places[groups] = np.arange(len(groups))
    return values.take(pa.array(places, mask=places < 0))


def _flags(array: pa.Array) -> Flags:
    flags: Flags = array.to_numpy(zero_copy_only=False)
    return flags

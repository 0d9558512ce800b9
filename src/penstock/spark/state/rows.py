"""Columns that steps with state add to rows, and what becomes of rows that do not go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.patterns.aggregate import CLOSED_GROUP, closed_reason
from penstock.patterns.node import DEAD as DEAD_POLICY
from penstock.spark import frame
from penstock.spark.state.keys import Numbers
from penstock.spark.state.store import WEIGHT
from penstock.spark.times import Times

KEY, COMPLETES, SEQUENCE = "key", "completes", "sequence"
COMPLETED_BY, GROUP_SIZE = "completed_by", "group_size"
_ERROR = pa.struct([(name, pa.string()) for name in ("route", "step", "error", "reason")])


@dataclass(frozen=True)
class Fates:
    """Where the messages of a step are: here, or filtered by it, or dead because of it."""

    route: str
    step: str
    here: int
    filtered_place: int

    def filtered(self, rows: pa.Table) -> pa.Table:
        """A row that stands for several messages is filtered that many times."""
        if WEIGHT in rows.column_names:
            weights = rows.column(WEIGHT).to_numpy()
            rows = rows.take(pa.array(np.repeat(np.arange(len(rows)), weights))) if (weights > 1).any() else rows
        return replaced(rows, {frame.AT: self._places(rows, self.filtered_place)})

    def dead(self, rows: pa.Table, error: str, reasons: pa.Array) -> pa.Table:
        count = len(rows)
        parts = [pa.repeat(pa.scalar(text), count) for text in (self.route, self.step, error)]
        errors = pa.StructArray.from_arrays([*parts, reasons.cast(pa.string())], fields=list(_ERROR))
        return replaced(rows, {frame.AT: self._places(rows, frame.DEAD), frame.ERROR: errors})

    def declared(self, rows: pa.Table, policy: str, error: str, reasons: pa.Array) -> pa.Table:
        return self.dead(rows, error, reasons) if policy == DEAD_POLICY else self.filtered(rows)

    def closed(self, rows: pa.Table, policy: str) -> pa.Table:
        reasons = pa.array([closed_reason(key) for key in rows.column(KEY).to_pylist()], pa.string())
        return self.declared(rows, policy, CLOSED_GROUP, reasons)

    def _places(self, rows: pa.Table, place: int) -> npt.NDArray[np.int32]:
        return np.full(len(rows), place, np.int32)


def replaced(table: pa.Table, columns: Mapping[str, object]) -> pa.Table:
    """The table with other values in these columns."""
    for name, values in columns.items():
        array = pa.array(values) if isinstance(values, np.ndarray) else values
        position = table.schema.get_field_index(name)
        if position < 0:
            table = table.append_column(name, array)
        else:
            table = table.set_column(position, name, array)
    return table


def in_place_of_first(rows: pa.Table, groups: Numbers) -> pa.Array:
    """The order of messages that go on together, group by group: the place of the group's first, then their number."""
    orders = rows.column(frame.ORDER).combine_chunks()
    parts = dict(zip(orders.type.names, orders.flatten(), strict=True))
    sortable = {"group": pa.array(groups)} | {name: parts[name] for name in ("source", "topic", "partition", "offset")}
    ranks = pc.sort_indices(pa.table(sortable), sort_keys=[(name, "ascending") for name in sortable]).to_numpy()
    sizes = np.bincount(groups) if len(groups) else np.empty(0, np.int64)
    firsts = ranks[np.concatenate(([0], np.cumsum(sizes)[:-1]))] if len(groups) else ranks
    number = np.arange(len(groups)) - np.repeat(np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
    moved = orders.take(pa.array(firsts[groups]))
    parts = dict(zip(moved.type.names, moved.flatten(), strict=True))
    paths = [[*path, place] for path, place in zip(parts["path"].to_pylist(), number.tolist(), strict=True)]
    parts["path"] = pa.array(paths, parts["path"].type)
    return pa.StructArray.from_arrays(list(parts.values()), fields=list(moved.type))


def bits(rows: pa.Table, columns: Iterable[str], timed: bool) -> dict[str, Times]:
    """How often each bit of these columns is set, by its number: as JSON has it, text. `timed` asks for the times."""
    found: dict[str, Times] = {}
    for index, name in enumerate(columns):
        for value, times in _by_value(rows.column(name).to_numpy(), rows.column(frame.TIME) if timed else None):
            while value:
                lowest = value & -value
                number = str(index * frame.BITS + lowest.bit_length() - 1)
                found[number] = found.get(number, Times()) + times
                value ^= lowest
    return found


def _by_value(marks: Numbers, times: pa.ChunkedArray | None) -> Iterator[tuple[int, Times]]:
    if times is None:
        values, counts = np.unique(marks, return_counts=True)
        yield from zip(values.tolist(), map(Times, counts.tolist()), strict=True)
        return
    values, where, counts = np.unique(marks, return_inverse=True, return_counts=True)
    micros = times.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()
    known = ~np.isnan(micros)
    where, micros = where[known], micros[known]
    knowing = np.bincount(where, minlength=len(values))
    sums, earliest = np.bincount(where, micros, len(values)), np.full(len(values), np.inf)
    np.minimum.at(earliest, where, micros)
    for value, count, number, total, first in zip(values, counts, knowing, sums, earliest, strict=True):
        yield int(value), Times(int(count), total / number / 1e6, first / 1e6) if number else Times(int(count))

"""Columns that steps with state add to rows, and marks for rows that are filtered or become dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.envelope import AT, DEAD, ERROR, ERRORS, ORDER
from penstock.kernel.state.keys import Flags, Numbers
from penstock.kernel.state.store import WEIGHT
from penstock.kernel.table import flat, positions, with_one_more
from penstock.patterns.aggregate import CLOSED_GROUP, closed_reason
from penstock.patterns.node import DEAD as DEAD_POLICY

KEY, COMPLETES, SEQUENCE = "key", "completes", "sequence"
COMPLETED_BY, GROUP_SIZE = "completed_by", "group_size"


def fold_column(number: int) -> str:
    """The name of the column with the values that the fold of this number takes from each member."""
    return f"fold_{number}"


@dataclass(frozen=True)
class Fates:
    """Marks rows with what becomes of them at a step: they go on, are filtered, or are dead letters."""

    route: str
    step: str
    here: int
    filtered_place: int

    def filtered(self, rows: pa.Table) -> pa.Table:
        """Mark rows as filtered; a row that stands for several messages is repeated, so that each is counted."""
        if WEIGHT in rows.column_names:
            weights = rows.column(WEIGHT).to_numpy()
            rows = rows.take(pa.array(np.repeat(np.arange(len(rows)), weights))) if (weights > 1).any() else rows
        return replaced(rows, {AT: self._places(rows, self.filtered_place)})

    def dead(self, rows: pa.Table, error: str, reasons: pa.Array) -> pa.Table:
        count = len(rows)
        parts = [pa.repeat(pa.scalar(text), count) for text in (self.route, self.step, error)]
        errors = pa.StructArray.from_arrays([*parts, reasons.cast(pa.string())], fields=list(ERRORS))
        return replaced(rows, {AT: self._places(rows, DEAD), ERROR: errors})

    def declared(self, rows: pa.Table, policy: str, error: str, reasons: pa.Array) -> pa.Table:
        return self.dead(rows, error, reasons) if policy == DEAD_POLICY else self.filtered(rows)

    def closed(self, rows: pa.Table, policy: str) -> pa.Table:
        reasons = pa.array([closed_reason(key) for key in rows.column(KEY).to_pylist()], pa.string())
        return self.declared(rows, policy, CLOSED_GROUP, reasons)

    def _places(self, rows: pa.Table, place: int) -> npt.NDArray[np.int32]:
        return np.full(len(rows), place, np.int32)


def chosen(rows: pa.Table, flags: Flags) -> pa.Table:
    """The rows with a flag. Nothing is copied if all have it, or none."""
    if flags.all():
        return rows
    return rows.filter(pa.array(flags)) if flags.any() else rows.slice(0, 0)


def ordered(rows: pa.Table, order: Numbers) -> pa.Table:
    """The rows in this order. Nothing is copied if they are in it."""
    return rows if (order[1:] > order[:-1]).all() else rows.take(pa.array(order))


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
    """The order of messages that go on in groups: the place of the group's first message, then the number within it."""
    orders = flat(rows, ORDER)
    ranks = np.lexsort((*positions(orders)[::-1], groups))
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    moved = orders.take(pa.array(ranks[starts][groups]))
    number = np.arange(len(groups)) - starts[groups]
    parts = {name: moved.field(name) for name in orders.type.names}
    parts["path"] = with_one_more(parts["path"], pa.array(number, pa.int32()))
    return pa.StructArray.from_arrays(list(parts.values()), fields=list(moved.type))

"""The members of groups that wait as one row: written once, beside it, and read only if the group fails.

What a batch adds to a group is one chapter, under a key of its own. So a group that grows for many batches is not
written anew by each of them, and its row only has to know how many chapters there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernel.state.keys import HIGH, LOW, Flags, Keys, Numbers, ranges
from penstock.kernel.state.reduce import MAX, reduced
from penstock.kernel.state.rows import replaced
from penstock.kernel.state.store import DEADLINE, NEVER, WEIGHT, gone

CHAPTERS = "chapters"
"""The column of state that says how many chapters a row has; a member that is just coming has none."""

_STRIDE = np.int64(0x1E3779B97F4A7C15)
"""Odd, so that the keys of two chapters of one group are never the same."""

Find = Callable[[Keys], pa.Table]


def fresh(rows: pa.Table) -> Flags:
    """Which rows are members that no chapter has."""
    flags: Flags = rows.column(CHAPTERS).to_numpy() == 0
    return flags


def chapters_after(rows: pa.Table, starts: Numbers, ends: Numbers) -> pa.Array:
    """How many chapters each group has, once its new members are one."""
    before = reduced(MAX, rows.column(CHAPTERS).combine_chunks(), starts, ends)
    return pc.add(before, reduced(MAX, pa.array(fresh(rows).astype(np.int64)), starts, ends))


def chapter(rows: pa.Table, starts: Numbers, ends: Numbers, groups: pa.Table) -> pa.Table:
    """The new members of groups that go on waiting, as the last chapter of their row in `groups`.

    Their weight is null: the row of the group stands for them, and nobody meets them but by their key.
    """
    lengths = ends - starts
    keys = _keys(Keys.of(groups), groups.column(CHAPTERS).to_numpy())[np.repeat(np.arange(len(starts)), lengths)]
    members = rows.take(pa.array(ranges(starts, lengths)))
    count = len(members)
    marks = {HIGH: keys.high, LOW: keys.low, DEADLINE: np.full(count, NEVER), WEIGHT: pa.nulls(count, pa.int64())}
    return replaced(members, marks).filter(pa.array(fresh(members)))


def forgotten(before: pa.Table, after: pa.Table) -> pa.Table:
    """Marks for the chapters that groups had `before` and have no longer."""
    had = before.filter(pc.greater(before.column(CHAPTERS), 0))
    have = after.filter(pc.and_(pc.greater(after.column(CHAPTERS), 0), pc.is_valid(after.column(WEIGHT))))
    have = have.take(pa.array(Keys.of(have).order()))
    places = Keys.of(have).find(Keys.of(had))
    kept = np.zeros(len(had), np.int64)
    kept[places >= 0] = have.column(CHAPTERS).to_numpy()[places[places >= 0]]
    lengths = np.maximum(had.column(CHAPTERS).to_numpy() - kept, 0)
    lost = _keys(Keys.of(had)[np.repeat(np.arange(len(had)), lengths)], ranges(kept + 1, lengths))
    return gone(lost, before.schema)


def told(groups: pa.Table, find: Find) -> tuple[pa.Table, Numbers]:
    """The members in all chapters of these rows of groups, and the number of the row that each belongs to."""
    lengths = groups.column(CHAPTERS).to_numpy()
    owners = np.repeat(np.arange(len(groups)), lengths)
    keys = _keys(Keys.of(groups)[owners], ranges(np.ones(len(groups), np.int64), lengths))
    order = keys.order()
    members = find(keys[order])
    return members, owners[order][keys[order].find(Keys.of(members))]


def _keys(groups: Keys, numbers: Numbers) -> Keys:
    """The key of a chapter of each group: the key is a hash, and so is this."""
    return Keys(groups.high ^ (numbers * _STRIDE), groups.low)

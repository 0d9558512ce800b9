"""Store the members of an open group that is kept as one row (a fold), to be read only if the group fails.

The members that one batch adds to a group are a *chapter*, stored under a key of its own. So a group that grows for
many batches is not rewritten by each of them: its row only says how many chapters there are.
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
    """Which rows are new members that are in no chapter yet."""
    flags: Flags = rows.column(CHAPTERS).to_numpy() == 0
    return flags


def chapters_after(rows: pa.Table, starts: Numbers, ends: Numbers) -> pa.Array:
    """How many chapters each group has when its new members have become one."""
    before = reduced(MAX, rows.column(CHAPTERS).combine_chunks(), starts, ends)
    return pc.add(before, reduced(MAX, pa.array(fresh(rows).astype(np.int64)), starts, ends))


def chapter(rows: pa.Table, starts: Numbers, ends: Numbers, groups: pa.Table) -> pa.Table:
    """The new members of groups that stay open, as the last chapter of their row in `groups`.

    Their weight is null, because the row of the group counts them; they are found only by the key of the chapter.
    """
    lengths = ends - starts
    keys = _keys(Keys.of(groups), groups.column(CHAPTERS).to_numpy())[np.repeat(np.arange(len(starts)), lengths)]
    members = rows.take(pa.array(ranges(starts, lengths)))
    count = len(members)
    marks = {HIGH: keys.high, LOW: keys.low, DEADLINE: np.full(count, NEVER), WEIGHT: pa.nulls(count, pa.int64())}
    return replaced(members, marks).filter(pa.array(fresh(members)))


def forgotten(before: pa.Table, after: pa.Table) -> pa.Table:
    """Rows that delete the chapters which groups had `before` and do not have `after`."""
    had = before.filter(pc.greater(before.column(CHAPTERS), 0))
    have = after.filter(pc.and_(pc.greater(after.column(CHAPTERS), 0), pc.is_valid(after.column(WEIGHT))))
    have = have.take(pa.array(Keys.of(have).order()))
    places = Keys.of(have).find(Keys.of(had))
    kept = np.zeros(len(had), np.int64)
    kept[places >= 0] = have.column(CHAPTERS).to_numpy()[places[places >= 0]]
    lengths = np.maximum(had.column(CHAPTERS).to_numpy() - kept, 0)
    lost = _keys(Keys.of(had)[np.repeat(np.arange(len(had)), lengths)], ranges(kept + 1, lengths))
    return gone(lost, before.schema)


def read_chapters(groups: pa.Table, find: Find) -> tuple[pa.Table, Numbers]:
    """The members of these groups, read from all their chapters, and for each member the number of its group's row."""
    lengths = groups.column(CHAPTERS).to_numpy()
    owners = np.repeat(np.arange(len(groups)), lengths)
    keys = _keys(Keys.of(groups)[owners], ranges(np.ones(len(groups), np.int64), lengths))
    order = keys.order()
    members = find(keys[order])
    return members, owners[order][keys[order].find(Keys.of(members))]


def _keys(groups: Keys, numbers: Numbers) -> Keys:
    """The key of a chapter of each group, made of the group's key, which is a hash, and the number of the chapter."""
    return Keys(groups.high ^ (numbers * _STRIDE), groups.low)

"""The state of one bucket of keys: sorted Arrow files that never change, of which the newest with a key counts.

Every batch adds one file, a *run*. Runs of similar size are merged, so a bucket of n keys has about log n of them.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.durable import sync
from penstock.errors import ChangedApp
from penstock.kernel.state.keys import HIGH, LOW, Flags, Keys, Numbers, ranges

DEADLINE, GONE = "deadline", "gone"
WEIGHT = "weight"
"""The column of state that says how many messages a row stands for; null if another row stands for it."""

NEVER = np.iinfo(np.int64).max
"""Microseconds since 1970 that never come."""

Alive = Callable[[pa.Table], pa.ChunkedArray]

LEADING = pa.schema([(HIGH, pa.int64()), (LOW, pa.int64()), (DEADLINE, pa.int64()), (GONE, pa.bool_())])


@dataclass(frozen=True)
class Run:
    """One file of state: its path, the number of its rows, and the earliest deadline among them."""

    path: str
    rows: int
    earliest: int

    @cached_property
    def table(self) -> pa.Table:
        """The rows, mapped into memory: only the pages that are looked at are read."""
        return pa.ipc.open_file(pa.memory_map(self.path)).read_all()

    @cached_property
    def keys(self) -> Keys:
        return Keys.of(self.table)

    @cached_property
    def ends(self) -> Numbers:
        """Where each key's rows end."""
        return np.append(self.keys.starts()[1:], self.rows)

    def next_deadline(self, now: int) -> int:
        """The earliest deadline after `now`; whatever was due before is done."""
        if self.earliest > now:
            return self.earliest
        later = self.table.filter(pc.greater(self.table.column(DEADLINE), now)).column(DEADLINE)
        return pc.min(later).as_py() if len(later) else NEVER


def write_run(table: pa.Table, directory: str) -> Run:
    """Write rows that are sorted by key to a new file."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"{uuid.uuid4().hex}.arrow")
    with open(path, "wb") as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        file.flush()
        os.fsync(file.fileno())
    sync(directory)
    earliest = pc.min(table.column(DEADLINE)).as_py() if len(table) else None
    return Run(path, len(table), NEVER if earliest is None else earliest)


class Bucket:
    """The state of the keys of one bucket, in runs from oldest to newest; `payload` are the columns after LEADING."""

    def __init__(self, runs: Sequence[Run], payload: pa.Schema, title: str = "") -> None:
        self.runs, self.title = list(runs), title
        self.schema = pa.schema([*LEADING, *payload])

    def find(self, wanted: Keys) -> pa.Table:
        """The rows of these sorted, distinct keys, in their order."""
        pieces: list[pa.Table] = []
        places: list[Numbers] = []
        left: Numbers = np.arange(len(wanted))
        for run in reversed(self.runs):
            first = run.keys.find(wanted[left])
            found = first >= 0
            positions, lengths = _rows_of(run, first[found])
            pieces.append(self._readable(run.table.take(pa.array(positions))))
            places.append(np.repeat(left[found], lengths))
            left = left[~found]
            if not len(left):
                break
        if not pieces:
            return self.schema.empty_table()
        order = np.argsort(np.concatenate(places), kind="stable")
        rows = pa.concat_tables(pieces).take(pa.array(order))
        return rows.filter(pc.invert(rows.column(GONE)))

    def due(self, now: int) -> Keys:
        """The keys whose deadline has come, sorted."""
        late = [run for run in self.runs if run.earliest <= now]
        candidates = Keys.none()
        for run in late:
            rows = run.table
            passed = pc.and_(pc.less_equal(rows.column(DEADLINE), now), pc.invert(rows.column(GONE)))
            candidates = candidates.joined(run.keys[_flags(passed)])
        if not len(candidates):
            return candidates
        rows = self.find(candidates.distinct())
        return Keys.of(rows.filter(pc.less_equal(rows.column(DEADLINE), now))).distinct()

    def all_keys(self) -> Keys:
        """Every key that has state, sorted, without those of chapters, which the row of their group stands for."""
        found = Keys.none()
        for run in self.runs:
            found = found.joined(run.keys)
        rows = self.find(found.distinct())
        return Keys.of(rows.filter(pc.is_valid(rows.column(WEIGHT)))).distinct()

    def add(self, table: pa.Table, directory: str, alive: Alive) -> list[Run]:
        """The runs of this bucket with one more, which is merged with earlier runs that are not much bigger.

        When all of them are merged, rows that are not `alive` are left out.
        """
        if not len(table):
            return self.runs
        total, first = len(table), len(self.runs)
        while first > 0 and self.runs[first - 1].rows <= 2 * total:
            first -= 1
            total += self.runs[first].rows
        merged = _merged([*(self._readable(run.table) for run in self.runs[first:]), table], oldest=first == 0)
        if first == 0:
            merged = merged.filter(alive(merged))
        return [*self.runs[:first], *([write_run(merged, directory)] if len(merged) else [])]

    def _readable(self, rows: pa.Table) -> pa.Table:
        """Rows in the schema of today; raises where another version of the app stored messages with other fields."""
        if _types(rows.schema) == _types(self.schema):  # whatever the order, which a replay may have otherwise
            return _conformed(rows, self.schema)
        if pc.any(pc.and_(pc.invert(rows.column(GONE)), pc.greater(rows.column(WEIGHT), 0))).as_py():
            raise ChangedApp(f"step {self.title!r} holds messages that were stored with other fields than it has now",
                             fix="start the app as it was, or start with a new checkpoint")  # fmt: skip
        return _conformed(rows, self.schema)


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns of the schema; a column that is missing or has another type is null."""
    if table.schema.equals(schema):
        return table
    known = _types(table.schema)
    return pa.table(
        [table.column(f.name) if known.get(f.name) == f.type else pa.nulls(len(table), f.type) for f in schema],
        schema=schema,
    )


def gone(keys: Keys, schema: pa.Schema) -> pa.Table:
    """Rows that delete these keys."""
    count = len(keys)
    columns: dict[str, pa.Array] = {
        HIGH: pa.array(keys.high),
        LOW: pa.array(keys.low),
        DEADLINE: pa.array(np.full(count, NEVER)),
        GONE: pa.array(np.ones(count, bool)),
    }
    return pa.table([columns.get(f.name, pa.nulls(count, f.type)) for f in schema], schema=schema)


def sorted_by_key(tables: Iterable[pa.Table]) -> pa.Table:
    table = pa.concat_tables(tables)
    return table.take(pa.array(Keys.of(table).order()))


def _merged(tables: list[pa.Table], oldest: bool) -> pa.Table:
    """The rows of each key from the newest table that has it; deletions stay while older rows may exist."""
    newest_first = list(reversed(tables))
    table = pa.concat_tables(newest_first)
    ages = np.repeat(np.arange(len(tables)), [len(one) for one in newest_first])
    keys = Keys.of(table)
    order = keys.order()
    starts = keys[order].starts()
    lengths = np.diff(np.append(starts, len(order)))
    newest = np.repeat(ages[order][starts], lengths)
    rows = table.take(pa.array(order[ages[order] == newest]))
    return rows.filter(pc.invert(rows.column(GONE))) if oldest else rows


def _rows_of(run: Run, first: Numbers) -> tuple[Numbers, Numbers]:
    """All positions of the keys whose rows begin at `first`, and how many rows each key has."""
    lengths = run.ends[np.searchsorted(run.ends, first, side="right")] - first
    return ranges(first, lengths), lengths


def _flags(column: pa.ChunkedArray) -> Flags:
    flags: Flags = column.to_numpy()
    return flags

"""One task of a step that remembers: the rows of one bucket meet what the bucket holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.frame import AT, BODY, NOTE, VISITED
from penstock.spark.state.keys import HIGH, Keys
from penstock.spark.state.rows import bits
from penstock.spark.state.store import WEIGHT, Bucket, Run, gone, sorted_by_key
from penstock.spark.times import Times

SECOND = 1_000_000
"""Clocks and deadlines are whole microseconds."""

ROWS_AT_ONCE = 50_000
ROWS_PER_BATCH = 10_000


@dataclass(frozen=True)
class Moment:
    """When a batch is computed: its clock in microseconds, its number, and whether the run ends with it."""

    now: int
    batch: int
    stops: bool


@dataclass
class Outcome:
    """Rows that go on, what the touched keys hold from now on, and how many messages became fewer by merging.

    Keys that held something and are neither in `state` nor `unchanged` hold nothing any more.
    """

    out: list[pa.Table]
    state: pa.Table
    merged: int = 0
    unchanged: Keys = field(default_factory=Keys.none)


class Algorithm(Protocol):
    """What a pattern does with the arrivals of some keys, sorted by key, and with what these keys hold."""

    @property
    def payload(self) -> pa.Schema: ...

    def alive(self, held: pa.Table, now: int) -> pa.ChunkedArray:
        """Which rows must be kept when files are merged."""

    def __call__(self, held: pa.Table, rows: pa.Table, moment: Moment) -> Outcome: ...


@dataclass
class StateTask:
    """The function that Spark runs once per bucket; pickled to the workers."""

    title: str
    place: int
    algorithm: Algorithm
    runs: Mapping[int, list[Run]]
    directory: str
    moment: Moment
    arriving: pa.Schema
    leaving: pa.Schema
    timed: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        visit = _Visit(self, context.partitionId())
        waiting: list[pa.Table] = []
        for batch in batches:
            table = pa.Table.from_batches([batch]).cast(self.arriving)
            here = pc.fill_null(pc.equal(table.column(AT), self.place), False)
            yield from self._sent(table.filter(pc.invert(here)))
            waiting.append(table.filter(here))
            if sum(map(len, waiting)) >= ROWS_AT_ONCE:
                ready, left = _whole_keys(pa.concat_tables(waiting))
                waiting = [left]
                if len(ready):
                    yield from self._sent(*visit.process(ready, last=False))
        yield from self._sent(*visit.process(pa.concat_tables(waiting) if waiting else self.arriving.empty_table()))
        yield from self._sent(visit.note())

    def _sent(self, *tables: pa.Table) -> Iterator[pa.RecordBatch]:
        for table in tables:
            if len(table):
                yield from filled(self.leaving, len(table), table).to_batches(max_chunksize=ROWS_PER_BATCH)


@dataclass
class _Visit:
    """What happened so far to one bucket in this batch."""

    task: StateTask
    number: int
    deltas: list[pa.Table] = field(default_factory=list)
    held: int = 0
    added: int = 0
    merged: int = 0
    visited: dict[str, Times] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bucket = Bucket(self.task.runs.get(self.number, []), self.task.algorithm.payload, self.task.title)
        self.due = self.bucket.all_keys() if self.task.moment.stops else self.bucket.due(self.task.moment.now)

    def process(self, rows: pa.Table, last: bool = True) -> list[pa.Table]:
        arrived = Keys.of(rows)
        keys = arrived[arrived.starts()]
        reached = len(self.due) if last else int(np.searchsorted(self.due.high, keys.high[-1], side="right"))
        keys = keys.joined(self.due[:reached]).distinct()
        self.due = self.due[reached:]
        if not len(keys):
            return []
        held = self.bucket.find(keys)
        outcome = self.task.algorithm(held, rows, self.task.moment)
        before = Keys.of(held).distinct()
        stays = Keys.of(outcome.state).joined(outcome.unchanged).distinct()
        self.deltas.append(sorted_by_key([outcome.state, gone(before[stays.find(before) < 0], self.bucket.schema)]))
        self.held += _total(outcome.state, WEIGHT) - _total(held, WEIGHT)
        self.added += len(outcome.state)
        self.merged += outcome.merged
        marks = [name for name in self.task.arriving.names if name.startswith(VISITED)]
        for number, times in bits(rows, marks, self.task.timed).items():
            self.visited[number] = self.visited.get(number, Times()) + times
        return [table.drop_columns([name for name in marks if name in table.column_names]) for table in outcome.out]

    def note(self) -> pa.Table:
        """The row that tells the driver about this bucket, if anything changed."""
        delta = pa.concat_tables(self.deltas) if self.deltas else self.bucket.schema.empty_table()
        now = self.task.moment.now
        stale = [run for run in self.bucket.runs if run.earliest <= now]
        if not len(delta) and not self.merged and not self.visited and not stale:
            return pa.table({})
        runs = self.bucket.add(delta, self.task.directory, lambda held: self.task.algorithm.alive(held, now))
        text = {
            "step": self.task.title,
            "bucket": self.number,
            "runs": [[run.path, run.rows, run.next_deadline(now)] for run in runs],
            "held": self.held,
            "added": self.added,
            "merged": self.merged,
            "visited": {number: times.messages for number, times in self.visited.items()},
            "times": {number: known for number, times in self.visited.items() if (known := times.known) is not None},
        }
        return pa.table({AT: [NOTE], BODY: [json.dumps(text).encode()]})


def filled(schema: pa.Schema, count: int, columns: pa.Table | Mapping[str, Any]) -> pa.Table:
    """A table of this schema: the given columns, nulls elsewhere; a row that says nothing about it was nowhere yet."""
    names = columns.column_names if isinstance(columns, pa.Table) else list(columns)
    arrays = []
    for known in schema:
        if known.name in names:
            column = columns[known.name]
            arrays.append(column if column.type == known.type else column.cast(known.type))
        elif known.name.startswith(VISITED):
            arrays.append(pa.array(np.zeros(count, np.int64)))
        else:
            arrays.append(pa.nulls(count, known.type))
    return pa.table(arrays, schema=schema)


def _whole_keys(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of keys of which all rows are here, and those of the last key, of which more may come."""
    high = rows.column(HIGH).to_numpy()
    cut = int(np.searchsorted(high, high[-1]))
    return rows.slice(0, cut), rows.slice(cut)


def _total(table: pa.Table, name: str) -> int:
    return pc.sum(table.column(name)).as_py() or 0

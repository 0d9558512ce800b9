"""Carry rows to steps that remember: packed as Arrow bytes, one parcel for one bucket of one step.

Spark's shuffle moves the parcels between tasks, or on one machine only their places in files (`shelf.py`), and does not
look inside.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.kernel.block import MOST_BYTES, Numbers
from penstock.kernel.state.keys import HIGH, Keys
from penstock.kernel.state.step import StateStep
from penstock.kernel.table import in_one_piece
from penstock.spark.tasks.shelf import Shelf, Stored, fetched

PARCEL_BYTES = 1 << 20
"""About how many bytes of rows for one bucket make a parcel."""
ROWS_AT_ONCE = 200_000
"""How many rows a step handles at a time; those of one key are never divided."""

Packed = bytes | Stored
Parcel = tuple[int, tuple[int, Packed]]
"""The bucket, the number of the step, and the rows."""


@dataclass
class Outbox:
    """Collects the rows that a task sends to steps that remember, and packs them into parcels.

    With a shelf, these are put there.
    """

    buckets: int
    shelf: Shelf | None = None
    waiting: dict[int, list[pa.Table]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def add(self, step: int, rows: pa.Table) -> Iterator[Parcel]:
        """Add rows for a step; parcels leave when there are enough rows for all its buckets."""
        self.waiting.setdefault(step, []).append(rows)
        self.sizes[step] = self.sizes.get(step, 0) + rows.nbytes
        if self.sizes[step] >= PARCEL_BYTES * self.buckets:
            yield from self._sent(step)

    def rest(self) -> Iterator[Parcel]:
        for step in list(self.waiting):
            yield from self._sent(step)
        if self.shelf is not None:
            self.shelf.close()

    def _sent(self, step: int) -> Iterator[Parcel]:
        rows = in_one_piece(self.waiting.pop(step))
        self.sizes.pop(step)
        bucket = Keys.of(rows).high % self.buckets
        order = np.argsort(bucket.astype(np.int32), kind="stable")
        ordered, starts = rows.take(pa.array(order)), np.searchsorted(bucket[order], np.arange(self.buckets + 1))
        for number in range(self.buckets):
            start, end = int(starts[number]), int(starts[number + 1])
            if end > start:
                some = ordered.slice(start, end - start)
                yield number, (step, packed(some) if self.shelf is None else self.shelf.put(some))


class Inbox:
    """The rows that came to one bucket of a step; more than fit into memory wait in files, sorted by key."""

    def __init__(self, step: StateStep) -> None:
        self.step = step
        self.tables: list[pa.Table] = []
        self.sorted: list[pa.Table] = []
        self.size = 0

    def add(self, parcel: Packed) -> None:
        self.tables.append(unpacked(parcel))
        self.size += len(parcel)
        if self.size >= MOST_BYTES:
            self._spill()

    def rows(self) -> Iterator[tuple[pa.Table, bool]]:
        """All rows, some keys at a time, sorted for the step; each with whether they are the last."""
        if not self.sorted and sum(map(len, self.tables)) <= ROWS_AT_ONCE:
            yield self.step.ready(in_one_piece([self.step.arriving.empty_table(), *self.tables])), True
            return
        self._sort()
        cuts = self._cuts()
        for number, (low, high) in enumerate(itertools.pairwise(cuts)):
            some = [table.slice(low[place], high[place] - low[place]) for place, table in enumerate(self.sorted)]
            rows, is_last = in_one_piece([self.step.arriving.empty_table(), *some]), number == len(cuts) - 2
            if len(rows) or is_last:
                yield self.step.ready(rows), is_last

    def _sort(self) -> None:
        if self.tables:
            table, self.tables, self.size = in_one_piece(self.tables), [], 0
            self.sorted.append(table.take(pa.array(np.argsort(Keys.of(table).high, kind="stable"))))

    def _spill(self) -> None:
        self._sort()
        handle, path = tempfile.mkstemp(prefix="penstock-", suffix=".arrow")
        with os.fdopen(handle, "wb") as file, pa.ipc.new_file(file, self.sorted[-1].schema) as writer:
            writer.write_table(self.sorted[-1])
        self.sorted[-1] = pa.ipc.open_file(pa.memory_map(path)).read_all()
        os.remove(path)  # it stays as long as it is mapped

    def _cuts(self) -> list[Numbers]:
        """Where in each sorted table one lot of keys ends and the next begins."""
        highs: Sequence[Numbers] = [table.column(HIGH).to_numpy() for table in self.sorted]
        total = sum(map(len, highs))
        first, last = np.zeros(len(highs), np.int64), np.array([len(high) for high in highs], np.int64)
        size = max(1, min(ROWS_AT_ONCE, total * MOST_BYTES // max(sum(table.nbytes for table in self.sorted), 1)))
        if total <= size:
            return [first, last]
        ordered = np.sort(np.concatenate(highs))
        keys = np.unique(ordered[size::size])
        return [first, *(np.array([np.searchsorted(high, key) for high in highs]) for key in keys), last]


def packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(parcel: Packed | pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(fetched(parcel) if isinstance(parcel, Stored) else parcel).read_all()

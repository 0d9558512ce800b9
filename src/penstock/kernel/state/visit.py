"""Run the algorithm of a step on one bucket in one batch: on the rows that came and on the state of the bucket."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernel.state.algorithm import Algorithm, Moment
from penstock.kernel.state.keys import Keys
from penstock.kernel.state.store import WEIGHT, Bucket, Run, gone, sorted_by_key


@dataclass
class Visit:
    """One bucket of a step in one batch, and what has changed in it so far.

    `runs` are its files; new ones are written to `directory`. Without a directory no batch follows, and none is
    written.
    """

    title: str
    number: int
    algorithm: Algorithm
    runs: list[Run]
    directory: str | None
    moment: Moment
    deltas: list[pa.Table] = field(default_factory=list)
    held: int = 0
    added: int = 0
    merged: int = 0

    def __post_init__(self) -> None:
        self.bucket = Bucket(self.runs, self.algorithm.payload, self.title)
        self.due = self.bucket.all_keys() if self.moment.stops else self.bucket.due(self.moment.now)

    def process(self, rows: pa.Table, last: bool = True) -> list[pa.Table]:
        """The rows that leave the step, for arrivals sorted by key and keys that are due; unless `last`, more come."""
        arrived = Keys.of(rows)
        keys = arrived[arrived.starts()]
        reached = len(self.due) if last else int(np.searchsorted(self.due.high, keys.high[-1], side="right"))
        keys = keys.joined(self.due[:reached]).distinct()
        self.due = self.due[reached:]
        if not len(keys):
            return []
        held = self.bucket.find(keys)
        outcome = self.algorithm(held, rows, replace(self.moment, find=self.bucket.find))
        before = Keys.of(held).distinct()
        stays = Keys.of(outcome.state).joined(outcome.unchanged).distinct()
        self.deltas.append(sorted_by_key([outcome.state, gone(before[stays.find(before) < 0], self.bucket.schema)]))
        self.held += _total(outcome.state, WEIGHT) - _total(held, WEIGHT)
        self.added += len(outcome.state)
        self.merged += outcome.merged
        return outcome.out

    def note(self, wanted: bool = False) -> dict[str, Any] | None:
        """What the driver has to know of this bucket: its files now, and counts; None if nothing has changed."""
        delta = pa.concat_tables(self.deltas) if self.deltas else self.bucket.schema.empty_table()
        now = self.moment.now
        stale = any(run.earliest <= now for run in self.bucket.runs)
        if not (wanted or len(delta) or self.merged or stale):
            return None
        runs: list[Run] = []
        if self.directory is not None:
            runs = self.bucket.add(delta, self.directory, lambda held: self.algorithm.alive(held, now))
        return {
            "step": self.title,
            "bucket": self.number,
            "runs": [[run.path, run.rows, run.next_deadline(now)] for run in runs],
            "held": self.held,
            "added": self.added,
            "merged": self.merged,
        }


def _total(table: pa.Table, name: str) -> int:
    return pc.sum(table.column(name)).as_py() or 0

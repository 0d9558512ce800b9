"""Run an app in the tasks that read its sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pyspark.sql import Row, SparkSession

from penstock.plan.plan import Plan
from penstock.spark.direct.copies import copier_of
from penstock.spark.direct.gathering import gathered
from penstock.spark.direct.groups import GroupTask
from penstock.spark.direct.rows import GATHERED
from penstock.spark.direct.steps import visits
from penstock.spark.direct.tally import Tally
from penstock.spark.direct.task import DirectTask, Reader
from penstock.spark.frame import NOTE, Places
from penstock.spark.manifest import counts, reported, staged
from penstock.spark.read.arrive import check_files, gives_time
from penstock.spark.read.once import found
from penstock.spark.read.pieces import Sized
from penstock.spark.read.shares import shares
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.staging import Staging
from penstock.spark.write.task import TaskWriter

BUCKET_BYTES = 256 * 1024 * 1024
"""Of all that is read, about: what a task of the second job groups."""


class DirectRun:
    """An app over what its sources have, all at once or batch after batch."""

    def __init__(self, spark: SparkSession, plan: Plan, targets: Mapping[int, Target]) -> None:
        self.spark, self.plan, self.targets, self.places = spark, plan, targets, Places.of(plan)
        self.readers = [
            Reader(entry, self.places.routes[entry.route], copier_of(entry, plan)) for entry in plan.entries
        ]
        self.visits, self.cores = visits(plan), spark.sparkContext.defaultParallelism

    def compute_all(self, staging: Staging) -> tuple[Intent, int]:
        """Staged files and counts of all that sources have now, and how many messages came in. No sink changes."""
        check_files(self.plan.entries, streaming=False)
        return self.compute([found(reader.pieces, self.cores) for reader in self.readers], staging)

    def compute(self, pieces: Sequence[Sequence[Sized]], staging: Staging, timed: bool = False) -> tuple[Intent, int]:
        """The same of these pieces of each source: one job, or two around an aggregator."""
        now, plan, targets = datetime.now(UTC), self.plan, self.targets
        chosen = [(number, piece) for number, some in enumerate(pieces) for piece in some]
        shared = shares(chosen, self.cores, lambda one: one[1].size)
        buckets = max(self.cores, sum(piece.size for _, piece in chosen) // BUCKET_BYTES)
        gathering, asked = gathered(plan), timed and any(map(gives_time, plan.entries))
        writer = TaskWriter(targets, staging)
        task = DirectTask(self.readers, shared, self.visits, writer, now, asked, gathering, buckets)

        def run() -> list[Row]:
            rows = self._tasks(task, len(shared))
            paths = _tally(rows).gathered
            if gathering is None or not paths:
                return rows
            behind = self.visits[plan.stages().index(gathering.stage) + 1 :]
            start = self.places.routes[gathering.stage.route]
            second = GroupTask(gathering, start, paths, behind, TaskWriter(targets, staging, len(shared)))
            return rows + self._tasks(second, buckets)

        manifest = reported(run, targets, staging)
        tally = _tally(manifest)
        merged = tally.places[GATHERED] - tally.groups
        notes = [{"step": gathering.stage.title, "held": 0, "merged": merged}] if gathering is not None else []
        observed = tally.observed(plan) | ({"time": now.timestamp()} if timed and not asked else {})
        return Intent(
            staging.key, counts(plan, observed, notes=notes), staged(manifest, targets, staging)
        ), tally.received

    def _tasks(self, task: Callable[[Iterable[int]], Iterator[Row]], count: int) -> list[Row]:
        """No DataFrame: to plan a query takes Spark longer than a task takes for a hundred thousand messages."""
        context = self.spark.sparkContext
        return context.parallelize(range(count), max(count, 1)).mapPartitions(task).collect()


def _tally(manifest: Iterable[Row]) -> Tally:
    tally = Tally()
    for row in manifest:
        if row.place == NOTE:
            tally += json.loads(row.path)
    return tally

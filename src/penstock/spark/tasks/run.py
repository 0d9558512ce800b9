"""Run an app as one Spark job: tasks read its sources, and behind a shuffle tasks run each step that remembers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, Row, SparkSession

from penstock.envelope import NOTE
from penstock.errors import BadEndpoint
from penstock.kernel.flow import Flow
from penstock.kernel.state.algorithm import Moment
from penstock.kernel.state.step import state_steps
from penstock.kernel.waiting import WaitingRoom
from penstock.patterns.key import HOLD
from penstock.plan.demand import converts
from penstock.plan.plan import Outlet, Plan
from penstock.plan.waiting import waits
from penstock.spark.manifest import forget, reported, staged
from penstock.spark.master import is_local
from penstock.spark.read.arrive import check_files, gives_time, pieces_of
from penstock.spark.read.dataframes import rows_of
from penstock.spark.read.pieces import PieceStream, found
from penstock.spark.read.shares import shares
from penstock.spark.state.table import Snapshot
from penstock.spark.state.waiting import CHANNEL
from penstock.spark.tables import sent
from penstock.spark.tasks.dataframes import items_of
from penstock.spark.tasks.leaving import Outgoing
from penstock.spark.tasks.readers import Arrivals, Given, SourceReader, WaitingFile, WaitingReader
from penstock.spark.tasks.shelf import shelf_of
from penstock.spark.tasks.tally import Tally
from penstock.spark.tasks.task import MANIFEST, Item, ReadTask, StateTask, Work
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import Target, places_of
from penstock.spark.write.staging import Staging
from penstock.spark.write.staging_files import TaskWriter

NO_STATE = Snapshot(None, 1, Moment(0, 0, True), HOLD, 0, (), {}, {})
"""For apps that remember nothing."""


class TaskRun:
    """Runs an app over what its sources have, all at once or batch after batch."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        targets: Mapping[int, Target],
        streams: Mapping[int, PieceStream] | None = None,
    ) -> None:
        """`streams` are the sources that are read as streams, by their number."""
        self.spark, self.plan, self.targets = spark, plan, targets
        known = {number: stream.pieces for number, stream in (streams or {}).items()}
        self.readers = [SourceReader(entry, number, known[number] if number in known else pieces_of(entry))
                        for number, entry in enumerate(plan.entries)]  # fmt: skip
        self.flow, self.room = Flow(sent(spark, plan)), WaitingRoom(plan)
        places = places_of(plan)
        self.outgoing = {
            outlet.channel: Outgoing(place, _written(outlet), targets[place].wants_meta)
            for outlet in plan.outlets
            if (place := places[outlet.channel]) in targets
        }
        self.cores = spark.sparkContext.defaultParallelism

    def everything(self) -> Arrivals:
        """All pieces and rows that the sources have now."""
        check_files(self.plan.entries, streaming=False)
        given = [Given(reader, found(reader.pieces, self.cores)) for reader in self.readers]
        return Arrivals(given, rows_of(self.plan.entries, streaming=False))

    def compute(
        self, arrivals: Arrivals, staging: Staging, snapshot: Snapshot = NO_STATE, timed: bool = False
    ) -> tuple[Intent, int]:
        """Run the job; returns the intent (staged files, counts, notes) and how many messages came in.

        No sink and no state changes. The snapshot is the state before; messages that are due in it enter too. Spark
        shuffles only where messages of one key must meet.
        """
        now, plan, targets = datetime.now(UTC), self.plan, self.targets
        every = [*arrivals.given, *self._back(snapshot)]
        pieces = [(number, piece) for number, one in enumerate(every) for piece in one.pieces]
        shared = shares(pieces, self.cores, lambda one: one[1].size)
        asked = timed and (plan.remembers or any(map(gives_time, plan.entries)))
        steps = state_steps(plan, snapshot.on_stop, snapshot.ages)
        moment = snapshot.moment if plan.remembers else replace(snapshot.moment, now=int(now.timestamp() * 1e6))
        work = Work(self.flow, steps, snapshot.buckets, self.outgoing, now, asked, self.room, moment)
        readers = [one.reader for one in every]

        def run(work: Work) -> list[Row]:
            read = ReadTask(work, readers, shared, TaskWriter(targets, staging))
            items = self._read(read, arrivals.rows)
            count = items.getNumPartitions()
            for number, step in enumerate(steps):
                writer = TaskWriter(targets, staging, count + number * snapshot.buckets)
                task = StateTask(work, number, snapshot.runs(step.title), snapshot.directory, writer)
                items = items.partitionBy(snapshot.buckets, _bucket).mapPartitions(task)
            return [Row(**line) for _, (kind, line) in items.collect() if kind == MANIFEST]

        with shelf_of(staging, is_local(str(self.spark.sparkContext.master))) as shelf:
            manifest = reported(partial(run, replace(work, shelf=shelf)), targets, staging)
        tally, notes = Tally(), list[str]()
        for text in (row.path for row in manifest if row.place == NOTE):
            note = json.loads(text)
            if "received" in note:
                tally += note
            else:
                notes.append(text)
        files = staged(manifest, targets, staging)
        if waits(plan):
            rooms = [os.path.basename(str(file.final)) for file in files if file.channel == CHANNEL]
            notes.append(json.dumps(_waiting_note(tally, rooms)))
        counted = tally.counts(plan, now.timestamp() if timed and not asked else None)
        if counted.received != tally.received:
            forget(targets, staging)
            raise _not_conserved(tally.received, counted.received)
        return Intent(staging.key, counted, files, tuple(notes)), tally.received

    def _read(self, task: ReadTask, rows: DataFrame | None) -> RDD[Item]:
        """The items of the reading tasks; each task has its own partition number, so no two write the same file."""
        context, count = self.spark.sparkContext, len(task.shares)
        items: RDD[Item] = context.parallelize(range(count), max(count, 1)).mapPartitions(task)
        if rows is None:
            return items
        found = items_of(rows, task, dict(enumerate(self.readers)))
        return items.union(found) if count else found

    def _back(self, snapshot: Snapshot) -> list[Given]:
        """The messages of the waiting room that are due now."""
        if not snapshot.waiting:
            return []
        reader = WaitingReader(self.room, snapshot.since, snapshot.moment.now)
        return [Given(reader, [WaitingFile(path, os.path.getsize(path)) for path in snapshot.waiting])]


def _not_conserved(received: int, known: int) -> BadEndpoint:
    return BadEndpoint(
        f"{received:,} messages came in, and what became of {known:,} is known: a task that was repeated, after an"
        " executor was lost, gave another answer",
        fix="run it again; functions of a route have to answer alike every time",
    )


def _waiting_note(tally: Tally, files: Sequence[str]) -> dict[str, Any]:
    """A note on the waiting room: how many more messages wait at each step, their files, and when they are due."""
    times = dict(zip(("earliest", "latest"), tally.due, strict=True)) if tally.due is not None else {}
    return {"waits": {title: count for title, count in tally.waits.items() if count},
            "waiting": {"files": files, **times}}  # fmt: skip


def _bucket(number: int) -> int:
    return number


def _written(outlet: Outlet) -> frozenset[int]:
    """The scopes whose bodies this sink gets written anew."""
    return frozenset(inflow.scope.number for inflow in outlet.inflows if converts(outlet.sink, inflow.scope))

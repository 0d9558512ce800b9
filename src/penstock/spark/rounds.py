"""Passes of an app whose steps remember: each starts with what the one before left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec.structs import replace
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from penstock.plan.plan import Plan
from penstock.spark.execute import Executed, compute, execute
from penstock.spark.frame import WAITING
from penstock.spark.lower import lower
from penstock.spark.state.table import StateTable
from penstock.spark.state.waiting import CHANNEL, released, room, waits
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging


class Rounds:
    """An app and the table of its state."""

    def __init__(self, plan: Plan, table: StateTable, resumes_at: Collection[str] = ()) -> None:
        self.plan, self.table, self.waits, self.resumes_at = plan, table, waits(plan), resumes_at

    def targets(self, outlets: Mapping[int, Target]) -> dict[int, Target]:
        """The app's sinks, and the room where messages wait for their next try."""
        return {**outlets, WAITING: room(self.table.directory)} if self.waits else dict(outlets)

    def run(
        self,
        data: DataFrame,
        batch: int,
        outlets: Mapping[int, Target],
        staging: Staging,
        first: bool = False,
        stops: bool = False,
        record: Callable[[Intent], None] | None = None,
        held: bool = False,
    ) -> Executed:
        """One batch of arrivals, with those who waited for it; if it is held, only its state is published."""
        snapshot = self.table.before(batch, stops)
        again = released(data.sparkSession, self.plan, snapshot)
        count = Observation() if again is not None else None
        if again is not None and count is not None:
            counted = again.observe(count, F.count(F.lit(1)).alias("released"))
            data = data.unionByName(counted, allowMissingColumns=True)
        rows = lower(self.plan, data, snapshot, self.resumes_at)
        every = self.targets(outlets)
        done = (
            self._held(*compute(rows, self.plan, every, staging, count), staging)
            if held
            else execute(rows, self.plan, every, staging, first, record, count)
        )
        self.table.publish(batch, done.intent.notes)
        return done

    def _held(self, intent: Intent, query: DataFrame, staging: Staging) -> Executed:
        """A pass whose messages for sinks stay staged. The room is ours: the next pass needs those who wait there."""
        waiting = tuple(file for file in intent.files if file.channel == CHANNEL)
        if self.waits:
            publish(replace(intent, files=waiting), {WAITING: room(self.table.directory)}, staging)
        others = tuple(file for file in intent.files if file.channel != CHANNEL)
        return Executed(replace(intent, files=others), Kept(), query, staging)

    def until_quiet(
        self,
        data: DataFrame,
        outlets: Mapping[int, Target],
        key: str,
        scratch: str,
        lasting: str | None = None,
        held: bool = False,
    ) -> Iterator[Executed]:
        """A batch run: the arrivals, then further rounds until nobody waits for another try, then the stop."""
        nothing = data.sparkSession.createDataFrame([], data.schema)
        waiting, batch = 0, 0
        stops = not self.waits
        while True:
            staging = Staging(f"{key}-{batch:05d}" if batch else key, scratch, lasting or scratch)
            arrivals = data if not batch else nothing
            done = self.run(arrivals, batch, outlets, staging, first=not batch, stops=stops, held=held)
            yield done
            waiting, batch = waiting + done.intent.counts.held, batch + 1
            due = self.table.waiting_until()
            if due is not None:
                threading.Event().wait(max(due / 1_000_000 - time.time(), 0))
                stops = False
            elif stops or not waiting:
                return
            else:
                stops = True

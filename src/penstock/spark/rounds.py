"""Passes of an app whose steps remember: each starts with what the one before left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

import msgspec
from pyspark.sql import DataFrame, Observation

from penstock.patterns.idempotent import Idempotent
from penstock.patterns.key import DISCARD, FLUSH
from penstock.plan.plan import Plan
from penstock.spark.execute import Executed, compute, execute
from penstock.spark.frame import WAITING, Places
from penstock.spark.lower import lower
from penstock.spark.state.table import StateTable
from penstock.spark.state.waiting import CHANNEL, released, room, waits
from penstock.spark.tally import released_columns
from penstock.spark.write.durable import write_whole
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging


class Rounds:
    """An app and the table of its state."""

    def __init__(self, plan: Plan, table: StateTable, resumes_at: Collection[str] = ()) -> None:
        self.plan, self.table, self.waits, self.resumes_at = plan, table, waits(plan), resumes_at
        self.places = Places.of(plan)
        nodes = {stage.title: stage.node for stage in plan.stages()}
        table.titles = frozenset(nodes)
        table.keep_last = {
            title: node.keep_last for title, node in nodes.items() if isinstance(node, Idempotent) and node.keep_last
        }
        self.stops = any(getattr(node, "on_stop", None) in (FLUSH, DISCARD) for node in nodes.values())

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
        snapshot = replace(self.table.before(batch, stops), timed=record is not None)
        again = released(data.sparkSession, self.plan, snapshot)
        count = Observation() if again is not None else None
        if again is not None and count is not None:
            counted = again.observe(count, *released_columns(self.places))
            data = data.unionByName(counted, allowMissingColumns=True)
        rows = lower(self.plan, data, snapshot, self.resumes_at)
        every = self.targets(outlets)
        done = (
            self._held(*compute(rows, self.plan, every, staging, count), staging)
            if held
            else execute(rows, self.plan, every, staging, first, record, count)
        )
        return replace(done, waiting=self.publish(batch, done.intent))

    def publish(self, batch: int, intent: Intent) -> Mapping[str, int]:
        """The state after a batch; how many wait at each step now."""
        self.table.publish(batch, intent.notes)
        return self.table.held()

    def finish(self, nothing: DataFrame, outlets: Mapping[int, Target], staging: Staging) -> Executed | None:
        """A stream was stopped: steps that say so flush or discard what they hold. A crash on the way is no loss."""
        snapshot = self.table.at_stop() if self.stops else None
        if snapshot is None:
            return None
        rows = lower(self.plan, nothing, replace(snapshot, timed=True))
        done = execute(rows, self.plan, self.targets(outlets), staging, record=self._record_stop)
        self.table.publish_stop(done.intent.notes)
        os.remove(self._stop_file)
        return replace(done, waiting=self.table.held())

    def finish_again(self, outlets: Mapping[int, Target], staging: Staging) -> None:
        """A stop that a crash interrupted after everything was computed: it is published now."""
        try:
            with open(self._stop_file, "rb") as file:
                intent = msgspec.json.decode(file.read(), type=Intent)
        except FileNotFoundError:
            return
        publish(intent, self.targets(outlets), replace(staging, key=intent.key), again=True)
        self.table.publish_stop(intent.notes)
        os.remove(self._stop_file)

    @property
    def _stop_file(self) -> str:
        return os.path.join(self.table.directory, "stop.json")

    def _record_stop(self, intent: Intent) -> None:
        write_whole(self._stop_file, msgspec.json.encode(intent))

    def _held(self, intent: Intent, query: DataFrame, staging: Staging) -> Executed:
        """A pass whose messages for sinks stay staged. The room is ours: the next pass needs those who wait there."""
        waiting = tuple(file for file in intent.files if file.channel == CHANNEL)
        if self.waits:
            publish(msgspec.structs.replace(intent, files=waiting), {WAITING: room(self.table.directory)}, staging)
        others = tuple(file for file in intent.files if file.channel != CHANNEL)
        return Executed(msgspec.structs.replace(intent, files=others), Kept(), query, staging)

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

"""Run the passes of an app with steps that remember; each pass starts with the state that the one before left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import msgspec

from penstock.envelope import WAITING
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.key import DISCARD, FLUSH
from penstock.plan.plan import Plan
from penstock.plan.waiting import waits
from penstock.spark.execute import Executed, finish
from penstock.spark.state.table import StateTable
from penstock.spark.state.waiting import CHANNEL, room
from penstock.spark.tasks.readers import Arrivals
from penstock.spark.tasks.run import TaskRun
from penstock.spark.write.intent import Intent, NotedIntent
from penstock.spark.write.outlets import Target, promised
from penstock.spark.write.preparing import prepared
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging

STOP, REPLAY = "stop.json", "replay.json"


class Passes:
    """An app and its table of state: runs passes, and publishes their messages and their state."""

    def __init__(self, plan: Plan, table: StateTable) -> None:
        self.plan, self.table, self.waits = plan, table, waits(plan)
        nodes = {stage.title: stage.node for stage in plan.stages()}
        table.titles = frozenset(nodes)
        table.keep_last = {
            title: node.keep_last for title, node in nodes.items() if isinstance(node, Idempotent) and node.keep_last
        }
        self.stops = any(getattr(node, "on_stop", None) in (FLUSH, DISCARD) for node in nodes.values())

    def targets(self, outlets: Mapping[int, Target]) -> dict[int, Target]:
        """The sinks of the app and, if messages may wait for a later batch, the waiting room."""
        return {**outlets, WAITING: room(self.table.directory)} if self.waits else dict(outlets)

    def run(
        self,
        run: TaskRun,
        arrivals: Arrivals,
        batch: int,
        staging: Staging,
        first: bool = False,
        stops: bool = False,
        record: Callable[[Intent], None] | None = None,
        held: bool = False,
    ) -> Executed:
        """Compute and publish one batch, with the messages that waited for it; with `held`, publish only its state."""
        intent, received = run.compute(arrivals, staging, self.table.before(batch, stops), timed=record is not None)
        if held:
            done = Executed(self._held(intent, staging), received, Kept(), staging)
        else:
            kept = finish(intent, self.plan, run.targets, staging, first, record)
            done = Executed(intent, received, kept, staging)
        return replace(done, waiting=self.publish(batch, intent))

    def publish(self, batch: int, intent: Intent) -> Mapping[str, int]:
        """Publish the state after a batch; returns how many messages wait at each step."""
        self.table.publish(batch, intent.notes)
        return self.table.held()

    def finish(self, run: TaskRun, staging: Staging) -> Executed | None:
        """Flush or discard what steps hold, as they say, when a stream is stopped. A crash on the way loses nothing."""
        snapshot = self.table.after(stops=True) if self.stops else None
        if snapshot is None:
            return None
        intent, received = run.compute(Arrivals(), staging, snapshot, timed=True)
        kept = finish(intent, self.plan, run.targets, staging, record=self._noted(STOP).write)
        self.table.amend(intent.notes)
        self._noted(STOP).remove()
        return Executed(intent, received, kept, staging, self.table.held())

    @property
    def is_interrupted(self) -> bool:
        """Whether a stop or a replay was computed here and not published to its end."""
        return any(self._noted(name).read() is not None for name in (STOP, REPLAY))

    def finish_again(self, outlets: Mapping[int, Target], staging: Staging) -> None:
        """Publish a stop or a replay that a crash interrupted after everything was computed."""
        stop, replay = self._noted(STOP).read(), self._noted(REPLAY).read()
        if stop is not None:
            publish(stop, self.targets(outlets), replace(staging, key=stop.key), again=True)
            if not self.table.is_stopped:
                self.table.amend(stop.notes)
            self._noted(STOP).remove()
        if replay is not None:
            every = self.targets(prepared(promised(outlets)))
            publish(replay, every, replace(staging, key=replay.key), again=True)
            self.end_replay(replay)

    def replay(self, run: TaskRun, arrivals: Arrivals, staging: Staging) -> Executed:
        """Compute dead letters that come again between two batches of a stream; no sink and no state changes."""
        snapshot = self.table.after(stops=False)
        assert snapshot is not None
        intent, received = run.compute(arrivals, staging, snapshot)
        return Executed(intent, received, Kept(), staging)

    def begin_replay(self, intent: Intent) -> None:
        """Record the replay: from here on it counts, and whoever opens this state next publishes it first."""
        self._noted(REPLAY).write(intent)

    def end_replay(self, intent: Intent) -> Mapping[str, int]:
        """Add a published replay to the state; returns how many messages wait at each step."""
        if not self.table.has_replayed(intent.key):
            self.table.amend(intent.notes, intent.key)
        self._noted(REPLAY).remove()
        return self.table.held()

    def _noted(self, name: str) -> NotedIntent:
        return NotedIntent(os.path.join(self.table.directory, name))

    def _held(self, intent: Intent, staging: Staging) -> Intent:
        """Leave the messages for sinks staged, but publish the waiting room, because the next pass reads it."""
        waiting = tuple(file for file in intent.files if file.channel == CHANNEL)
        if self.waits:
            publish(msgspec.structs.replace(intent, files=waiting), {WAITING: room(self.table.directory)}, staging)
        return msgspec.structs.replace(intent, files=tuple(file for file in intent.files if file.channel != CHANNEL))

    def until_quiet(
        self,
        run: TaskRun,
        arrivals: Arrivals,
        key: str,
        scratch: str,
        lasting: str | None = None,
        held: bool = False,
    ) -> Iterator[Executed]:
        """A batch run: a pass over the arrivals, more passes until no message waits for another try, then the stop."""
        waiting, batch = 0, 0
        stops = not self.waits
        while True:
            staging = Staging(f"{key}-{batch:05d}" if batch else key, scratch, lasting or scratch)
            given = Arrivals() if batch else arrivals
            done = self.run(run, given, batch, staging, first=not batch, stops=stops, held=held)
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

"""The tasks of an app: some read its sources; others, behind one of Spark's shuffles, run a step that remembers.

Every task leads its messages as far as they come: to sinks, which it writes, or to the next step that remembers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.clock import begin_batch
from penstock.envelope import DEAD
from penstock.failures import DECODE
from penstock.kernel.block import Arrived, Block, Numbers
from penstock.kernel.flow import Ends, Flow
from penstock.kernel.outcome import Died, Letters
from penstock.kernel.state.algorithm import Moment
from penstock.kernel.state.step import StateStep
from penstock.kernel.state.store import Run
from penstock.kernel.state.visit import Visit
from penstock.kernel.waiting import DUE, WaitingRoom, admissions
from penstock.spark.read.pieces import Sized
from penstock.spark.tasks.leaving import Outgoing, buried, delivered, kept_waiting, note_of
from penstock.spark.tasks.parcels import Inbox, Outbox, packed
from penstock.spark.tasks.readers import Entering, Reader
from penstock.spark.tasks.shelf import Shelf
from penstock.spark.tasks.tally import Tally
from penstock.spark.tasks.worker import tune_worker
from penstock.spark.write.staging_files import TaskWriter

MANIFEST = -1
"""Stands in place of the number of a step in items that are lines of the manifest, for the driver."""

Item = tuple[int, tuple[int, Any]]
"""What a task sends to another one: the bucket, the number of the step, and rows for it."""


@dataclass(frozen=True)
class Work:
    """What all tasks of an app share; pickled to the workers.

    `time` is for messages whose source gives none; `timed` asks for the times of messages at each step and sink.
    """

    flow: Flow
    steps: Sequence[StateStep]
    buckets: int
    outgoing: Mapping[str, Outgoing]
    time: datetime
    timed: bool
    room: WaitingRoom
    moment: Moment
    shelf: str | None = None


class _Desk:
    """What one task has written, counted and sent so far."""

    def __init__(self, work: Work, writer: TaskWriter) -> None:
        self.work, self.writer = work, writer
        self.writing, self.tally, self.outbox = writer.begin(), Tally(), Outbox(
            work.buckets, None if work.shelf is None else Shelf(work.shelf))  # fmt: skip
        self.numbers = {step.title: number for number, step in enumerate(work.steps)}
        self.failed: set[tuple[str, int, int]] = set()

    def enter(self, entering: Entering) -> Iterator[Item]:
        """Count messages that enter, and lead them through the app."""
        block, failures, arrived = entering.block, entering.failures, entering.block.arrived
        times, bad = self.times_of(arrived), [row for row, _ in failures]
        unreadable = [_unreadable(entering)] if failures else []
        count, title = len(block) + len(bad), entering.title
        if entering.back:
            self.tally.waits[str(title)] -= count
        else:
            self.tally.received += count
        if title is None:
            self.tally.decoded(entering.route, count, bad, times)
        elif bad:  # of an app that reads other bodies now
            self.tally.steps[title].update({"dead": len(bad), "held" if entering.back else "received":
                                            -len(bad) if entering.back else len(bad)})  # fmt: skip
        yield from self.hand_over(entering.follow(self.work.flow), times, unreadable)

    def hand_over(self, ends: Ends, times: Numbers | None, unreadable: Sequence[Letters] = ()) -> Iterator[Item]:
        """Write messages for sinks and for the waiting room, and send those for steps that remember."""
        work = self.work
        self.tally.count(ends, times)
        for batch in delivered(ends, work.outgoing, work.time):
            self.writing.write(batch)
        if DEAD in self.writer.targets:
            for batch in buried([*ends.dead, *unreadable], work.time):
                self.writing.write(batch)
        for one in ends.waiting:
            rows = work.room.rows(one, work.moment.now, work.time)
            self.tally.began_to_wait(one.title, rows.column(DUE).to_numpy())
            self.writing.write(kept_waiting(packed(rows)))
        self.failed.update(admissions(ends.failed, work.room.titles, work.moment.batch))
        for title, blocks in ends.held.items():
            number = self.numbers[title]
            for block in blocks:
                yield from self.outbox.add(number, work.steps[number].rows(block, work.time))

    def close(self) -> Iterator[Item]:
        yield from self.outbox.rest()
        if self.failed:
            keys = [{"step": title, "high": high, "low": low} for title, high, low in sorted(self.failed)]
            self.note({"forget": keys})
        self.writing.write(note_of(self.tally.note()))
        for line in self.writing.close():
            yield self.writing.partition, (MANIFEST, line)

    def note(self, what: Mapping[str, Any]) -> None:
        self.writing.write(note_of(json.dumps(what)))

    def times_of(self, arrived: Arrived) -> Numbers | None:
        """The times of messages in seconds since 1970, NaN where unknown; None if nobody asks for them."""
        if not self.work.timed:
            return None
        if arrived.times is None:
            return np.full(len(arrived.bodies), self.work.time.timestamp())
        seconds: Numbers = arrived.times.cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6
        return seconds


@dataclass(frozen=True)
class ReadTask:
    """The function that Spark runs for every share of pieces: it reads them and leads the messages through the app."""

    work: Work
    readers: Sequence[Reader]
    shares: Sequence[Sequence[tuple[int, Sized]]]
    writer: TaskWriter

    def __call__(self, numbers: Iterable[int]) -> Iterator[Item]:
        return self.run(entering for number in numbers for chosen, piece in self.shares[number]
                        for entering in self.readers[chosen].entering(piece))  # fmt: skip

    def run(self, every: Iterable[Entering]) -> Iterator[Item]:
        tune_worker()
        begin_batch(self.work.moment.now)
        with self.writer.gate.passed():
            desk = _Desk(self.work, self.writer)
            for entering in every:
                yield from desk.enter(entering)
            yield from desk.close()


def _unreadable(entering: Entering) -> Letters:
    arrived, scope, rows = entering.block.arrived, entering.block.scope, [row for row, _ in entering.failures]
    origin = np.array(rows)
    errors, reasons = ([getattr(why, name) for _, why in entering.failures] for name in ("error", "reason"))
    bad = Block(arrived, origin, scope, entering.block.table, origin, attempt=arrived.attempts(entering.route, origin))
    return Letters(entering.route, DECODE, Died(bad, origin, errors, reasons))


@dataclass(frozen=True)
class StateTask:
    """The function that Spark runs for every bucket of one step that remembers, which has this number."""

    work: Work
    number: int
    runs: Mapping[int, list[Run]]
    directory: str | None
    writer: TaskWriter

    def __call__(self, items: Iterable[Item]) -> Iterator[Item]:
        tune_worker()
        begin_batch(self.work.moment.now)
        with self.writer.gate.passed():
            yield from self._visited(items)

    def _visited(self, items: Iterable[Item]) -> Iterator[Item]:
        step, desk = self.work.steps[self.number], _Desk(self.work, self.writer)
        bucket, inbox = desk.writing.partition - self.writer.first, Inbox(step)
        for _, (number, payload) in items:
            if number == self.number:
                inbox.add(payload)
            else:
                yield bucket, (number, payload)
        moment = self.work.moment
        visit = Visit(step.title, bucket, step.algorithm, self.runs.get(bucket, []), self.directory, moment)
        for rows, is_last in inbox.rows():
            outcome = step.outcome(visit.process(rows, is_last), moment.batch)
            blocks = [*(moved.block for moved in outcome.moved), *(died.block for died in outcome.died)]
            if outcome.undecided is not None:
                blocks.append(outcome.undecided)
            if blocks or len(outcome.filtered):
                times = desk.times_of(blocks[0].arrived) if blocks else None
                yield from desk.hand_over(self.work.flow.after(step.title, outcome), times)
        desk.tally.steps[step.title].update(held=visit.held, copied=-visit.merged)
        note = visit.note()
        if note is not None:
            desk.note(note)
        yield from desk.close()

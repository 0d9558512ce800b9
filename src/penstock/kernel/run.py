"""Run an app on lists of messages in this process: the same engine as on Spark, without Spark, for tests."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.budget import check_batch, messages_of
from penstock.clock import begin_batch
from penstock.endpoints.memory import as_messages
from penstock.failures import DECODE
from penstock.kernel.block import Block, arrived_of, in_order
from penstock.kernel.bodies import body_of, in_slices, kept, raw
from penstock.kernel.content import fitted
from penstock.kernel.flow import Ends, Flow
from penstock.kernel.plain import to_python
from penstock.kernel.reading import Decoder
from penstock.kernel.state.algorithm import Moment
from penstock.kernel.state.keys import Keys
from penstock.kernel.state.receiving import PAYLOAD
from penstock.kernel.state.step import StateStep, state_steps
from penstock.kernel.state.store import LEADING, Run, gone, write_run
from penstock.kernel.state.visit import Visit
from penstock.kernel.waiting import DUE, WaitingRoom, admissions, due_between
from penstock.message import EPOCH, DeadLetter, Lineage, Message, Position
from penstock.patterns.key import FLUSH
from penstock.plan.demand import converts
from penstock.plan.plan import Outlet, Plan
from penstock.plan.waiting import waits
from penstock.summary import Step, Summary

Result = tuple[dict[str, list[Message]], list[DeadLetter], Summary]
Arriving = dict[str, list[pa.Table]]
"""Rows on their way to steps that remember."""
Batch = tuple[float, Mapping[str, Iterable[object]]]
"""The time in seconds, and what arrives at each source."""


def run(plan: Plan, batches: Sequence[Batch], stop: bool = True) -> Result:
    """The messages of each channel, the dead letters and the counts. With `stop`, the run ends with the last batch."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        process, last = _Process(plan, directory), len(batches) - 1
        for number, (now, messages) in enumerate(batches):
            with process.within_budget():
                process.batch(round(now * 1e6), messages, stop and number == last and not waits(plan))
                if stop and number == last and waits(plan):
                    process.stop()
        return process.result()


class _Process:
    """One run: what was delivered and counted so far. What steps remember is in files of the directory."""

    def __init__(self, plan: Plan, directory: str) -> None:
        self.plan, self.directory, self.flow = plan, directory, Flow(plan)
        self.channels: dict[str, list[Message]] = {outlet.channel: [] for outlet in plan.outlets}
        self.dead: list[DeadLetter] = []
        self.ends, self.received, self.undecoded = Ends(), 0, dict[str, Counter[str]]()
        self.runs: dict[str, list[Run]] = defaultdict(list)
        self.ages: dict[str, Counter[int]] = defaultdict(Counter)
        self.held: Counter[str] = Counter()
        self.offsets: Counter[str] = Counter()
        self.room, self.waiting, self.number, self.now = WaitingRoom(plan), list[pa.Table](), 0, -1
        self.failed: set[tuple[str, int, int]] = set()

    @contextmanager
    def within_budget(self) -> Iterator[None]:
        plan, received, dead, held = self.plan, self.received, len(self.dead), self._held
        yield
        errors = Counter(f"{letter.error} at {letter.route}.{letter.step}" for letter in self.dead[dead:])
        arrived = messages_of(self.received - received, self._held - held)
        check_batch(plan.name, plan.error_budget, len(self.dead) - dead, arrived, errors)

    @property
    def _held(self) -> int:
        return self.held.total() + sum(map(len, self.waiting))

    def stop(self) -> None:
        """Run further batches until no message waits, then end the run; begin again if that makes messages wait."""
        while True:
            while self.waiting:
                self.batch(min(pc.min(rows[DUE]).as_py() for rows in self.waiting), {})
            self.batch(self.now, {}, stops=True)
            if not self.waiting:
                return

    def batch(self, now: int, messages: Mapping[str, Iterable[object]], stops: bool = False) -> None:
        self.now = max(now, self.now + 1)  # no two batches are at the same time
        moment, self.number = Moment(self.now, self.number, stops), self.number + 1
        begin_batch(self.now)
        arriving: dict[str, list[pa.Table]] = defaultdict(list)
        steps = {step.title: step for step in state_steps(self.plan, FLUSH, self.ages)}
        self._try_again(moment, steps, arriving)
        self._read(moment, messages, steps, arriving)
        for step in steps.values():
            self._visit(step, arriving.pop(step.title, []), moment, steps, arriving)
        self._forget()

    def _try_again(self, moment: Moment, steps: Mapping[str, StateStep], arriving: Arriving) -> None:
        waited, self.waiting = self.waiting, []
        for rows in waited:
            due = due_between(rows, -1, moment.now)
            rest = np.setdiff1d(np.arange(len(rows)), due)
            if len(rest):
                self.waiting.append(rows.take(pa.array(rest)))
            if len(due):
                back = self.room.released(rows.take(pa.array(due)))
                assert not back.failures
                self._add(self.flow.try_again(back.title, back.block), moment, steps, arriving)

    def _forget(self) -> None:
        """Let idempotent receivers forget the keys of messages that have failed."""
        for title in {title for title, _, _ in self.failed}:
            pairs = sorted((high, low) for name, high, low in self.failed if name == title)
            keys = Keys(*(np.array(half, np.int64) for half in zip(*pairs, strict=True)))
            self.runs[title].append(write_run(gone(keys, pa.schema([*LEADING, *PAYLOAD])), self.directory))
            self.ages[title][self.number - 1] -= len(pairs)
        self.failed.clear()

    def _read(
        self, moment: Moment, messages: Mapping[str, Iterable[object]],
        steps: Mapping[str, StateStep], arriving: Arriving,
    ) -> None:  # fmt: skip
        for number, entry in enumerate(self.plan.entries):
            given = as_messages(messages.get(entry.route, ()), entry.route, self.offsets[entry.route])
            self.offsets[entry.route] += len(given)
            times = pa.array([message.time for message in given], pa.timestamp("us", "UTC"))
            block, failures = Decoder(entry)(replace(arrived_of(given, entry.route, number), times=times))
            self.received += len(given)
            counted = self.undecoded.setdefault(f"{entry.route}.{DECODE}", Counter())
            counted.update(received=len(given), dead=len(failures), sent=len(block))
            self.dead += [DeadLetter(given[row], entry.route, DECODE, bad.error, bad.reason) for row, bad in failures]
            if len(block):
                self._add(self.flow.run(entry.route, block), moment, steps, arriving)

    def _visit(
        self, step: StateStep, came: list[pa.Table], moment: Moment,
        steps: Mapping[str, StateStep], arriving: Arriving,
    ) -> None:  # fmt: skip
        visit = Visit(step.title, 0, step.algorithm, self.runs[step.title], self.directory, moment)
        given = visit.process(step.ready(pa.concat_tables([step.arriving.empty_table(), *came])))
        note = visit.note()
        if note is not None:
            self.runs[step.title] = [Run(*run) for run in note["runs"]]
            self.ages[step.title][moment.batch] += note["added"]
        self.held[step.title] += visit.held
        self.ends.steps[step.title].update(held=visit.held, copied=-visit.merged)
        self._add(self.flow.after(step.title, step.outcome(given, moment.batch)), moment, steps, arriving)

    def _add(self, made: Ends, moment: Moment, steps: Mapping[str, StateStep], arriving: Arriving) -> None:
        for outlet in self.plan.outlets:
            if made.delivered[outlet.channel]:
                self.channels[outlet.channel] += _delivered(outlet, made.delivered[outlet.channel])
        for letters in made.dead:
            died = letters.died
            told = zip(_messages(died.block, raw(died.block)), died.errors, died.reasons, died.block.tries, strict=True)
            self.dead += [DeadLetter(message, letters.route, letters.step, error, reason, int(tries))
                          for message, error, reason, tries in told]  # fmt: skip
        for title, blocks in made.held.items():
            arriving[title] += [steps[title].rows(block, EPOCH) for block in blocks]
        self.waiting += [self.room.rows(one, moment.now, EPOCH) for one in made.waiting]
        self.failed.update(admissions(made.failed, self.room.titles, moment.batch))
        made.held.clear()
        self.ends.add(made)

    def result(self) -> Result:
        plan, ends = self.plan, self.ends
        steps = self.undecoded | {stage.title: ends.steps[stage.title] for stage in plan.stages()}
        summary = Summary(
            plan.name, 1, self.received, ends.copied, {name: len(found) for name, found in self.channels.items()},
            ends.filtered, len(self.dead), self._held,
            steps={title: Step(**numbers) for title, numbers in steps.items()},
        )  # fmt: skip
        return self.channels, self.dead, summary


def _delivered(outlet: Outlet, blocks: list[Block]) -> Iterator[Message]:
    written_anew = frozenset(block.scope.number for block in blocks if converts(outlet.sink, block.scope))
    asked = getattr(outlet.sink, "format", None)
    for leaving in in_slices(blocks):
        messages = []
        for block in leaving:
            bodies = body_of(block, written_anew)
            if block.scope.number in written_anew and asked is not None and asked.name != "json":
                wanted = block.scope.wanted
                fields = to_python(fitted(block.fields, wanted), wanted)
                bodies = pa.array([asked.encode(body) for body in fields], pa.binary())
            messages += _messages(block, bodies)
        yield from (messages[place] for place in in_order(leaving))


def _messages(block: Block, bodies: pa.Array) -> list[Message]:
    arrived, rows, fields = block.arrived, block.origin, kept(block)
    none: list[Any] = [None] * len(block)
    attachments = none if arrived.attachments is None else arrived.attachments.take(pa.array(rows)).to_pylist()
    places = zip(arrived.topics(rows).to_pylist(), arrived.partitions(rows), arrived.offsets[rows], strict=True)
    assert arrived.times is not None
    columns = (bodies.to_pylist(), fields, block.ids.to_pylist(), block.known_headers.to_pylist(), attachments,
               block.parents.to_pylist(), places, arrived.times.take(pa.array(rows)).to_pylist())  # fmt: skip
    made = []
    for row, (body, known, identity, headers, attached, parent, place, time) in enumerate(zip(*columns, strict=True)):
        parts, lineage = block.parts, None
        if parts is not None and parts.index[row] >= 0:
            lineage = Lineage(parent, int(parts.index[row]), int(parts.count[row]))
        topic, partition, offset = place
        found = Position(topic, int(partition), int(offset))
        made.append(Message(identity, body, known, dict(headers or ()), dict(attached or ()), found, time, lineage,
                            known is not None))  # fmt: skip
    return made

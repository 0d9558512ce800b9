"""Run an app as a stream: the same plan over micro-batches, one query whatever the number of branches and sinks."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import BudgetExceeded
from penstock.patterns.key import HOLD
from penstock.plan.plan import Plan
from penstock.route.app import App
from penstock.spark.check import check
from penstock.spark.direct.run import DirectRun
from penstock.spark.direct.steps import is_direct
from penstock.spark.direct.stream import DirectStream
from penstock.spark.execute import execute, finish
from penstock.spark.failure import stopped
from penstock.spark.frame import BODY, Places
from penstock.spark.lower import entered, lower
from penstock.spark.read.arrive import Reading, arriving, check_sources, forget_beginnings, stream_of
from penstock.spark.read.files import BYTES_PER_BATCH
from penstock.spark.read.numbered import ROWS_PER_BATCH
from penstock.spark.read.ticks import with_ticks
from penstock.spark.rounds import Rounds
from penstock.spark.run import RunResult, summarized
from penstock.spark.session import session
from penstock.spark.ship import ship
from penstock.spark.state.table import StateTable
from penstock.spark.upgrade import NOTHING, record, settle
from penstock.spark.write.console import show
from penstock.spark.write.held import holding
from penstock.spark.write.intent import Counts, Intent, Journal
from penstock.spark.write.outlets import Target, targets
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.ready import made_ready
from penstock.spark.write.staging import Staging
from penstock.summary import Summary

POLL_SECONDS = 0.2
_RECEIVED = "received"


@holding()
def run_stream(
    app: App,
    checkpoint: str | None = None,
    once: bool = False,
    trigger: str | None = None,
    spark: SparkSession | None = None,
    on_batch: Callable[[Summary], None] | None = None,
    stop: threading.Event | None = None,
    rows_per_batch: int = ROWS_PER_BATCH,
    bytes_per_batch: int = BYTES_PER_BATCH,
    on_change: Callable[[str], None] | None = None,
) -> RunResult:
    """Micro-batches until stopped, or until what is there now is done (`once`).

    The checkpoint directory holds how far the stream has come: the same one continues, a new one starts afresh.
    Without one, the position is forgotten when the run ends. `on_change` is told in one line what is different from the
    app that ran there before; a difference with which it cannot go on is an error.
    """
    plan = app.plan
    check(plan)
    check_sources(plan.entries)
    outlets = targets(plan)
    outlets = made_ready(outlets)
    spark = spark or session(app.name)
    ship(spark)
    scratch = tempfile.mkdtemp(prefix="penstock-")
    try:
        place = os.path.abspath(checkpoint) if checkpoint else os.path.join(scratch, "checkpoint")
        reading = Reading(spark, True, os.path.join(place, "penstock-sources"), rows_per_batch, bytes_per_batch)
        state = Rounds(plan, StateTable(_state(place), HOLD)) if plan.remembers else None
        journal = Journal(place)
        if not journal.has_begun:
            forget_beginnings(reading)
        direct = _direct(plan, outlets, reading, journal)
        batches = _Batches(plan, outlets, scratch, journal, state, direct, on_batch)
        batches.finish_again()
        data = _arrived(plan, reading) if direct is not None else _entered(plan, reading)
        changed = _settled(plan, data, place, journal, state)
        if changed and on_change:
            on_change(changed)
        if state is not None:
            data = with_ticks(data, spark, state.table.directory)
        elif direct is None and not batches.lowers:
            data = lower(plan, data)
        query = _start(app, data, batches, place, once, trigger)
        batches.query = query
        _wait(query, batches, stop)
        batches.settle(last=True)
        batches.finish(spark.createDataFrame([], data.schema))
        return batches.result
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _settled(plan: Plan, data: DataFrame, place: str, journal: Journal, state: Rounds | None) -> str | None:
    """What is different from the app that ran at this checkpoint before."""
    table = state.table if state is not None else None
    kept = table or (StateTable(_state(place), HOLD) if os.path.isdir(_state(place)) else None)
    contents = kept.contents(journal.notes_after) if kept is not None else NOTHING
    return settle(place, plan, record(plan, data, table), contents)


def _state(place: str) -> str:
    return os.path.join(place, "penstock-state")


def _direct(plan: Plan, outlets: Mapping[int, Target], reading: Reading, journal: Journal) -> DirectStream | None:
    """The stream by itself, if tasks can do all there is to do while they read, and its offsets can be read."""
    as_usual = reading.spark.conf.get("spark.sql.streaming.offsetLog.formatVersion", "1") == "1"
    if plan.remembers or not as_usual or not is_direct(plan, outlets):
        return None
    sources = [stream_of(entry, reading) for entry in plan.entries]
    return DirectStream(DirectRun(reading.spark, plan, outlets), sources, journal)


def _arrived(plan: Plan, reading: Reading) -> DataFrame:
    """The streaming rows of all sources, in the order of the plan: nobody computes them."""
    return reduce(DataFrame.union, (arriving(entry, reading).rows.select(BODY) for entry in plan.entries))


def _entered(plan: Plan, reading: Reading) -> DataFrame:
    """The streaming rows at the start of their routes.

    Without state the whole plan is analysed once and run for every micro-batch. With state, every micro-batch is
    analysed anew: what the steps hold has changed. So it is with steps that stop what they have made.
    """
    sources = {
        entry.route: arriving(entry, reading).rows.observe(
            f"{_RECEIVED} {entry.route}", F.count(F.lit(1)).alias(_RECEIVED)
        )
        for entry in plan.entries
    }
    return entered(plan, sources)


def _start(app: App, data: DataFrame, batches: _Batches, place: str, once: bool, trigger: str | None) -> StreamingQuery:
    writer = data.writeStream.foreachBatch(batches.run).queryName(app.name)
    writer = writer.option("checkpointLocation", f"file://{place}")  # Hadoop takes the path as it is: nothing is quoted
    if once:
        writer = writer.trigger(availableNow=True)
    elif trigger:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()


def _wait(query: StreamingQuery, batches: _Batches, stop: threading.Event | None) -> None:
    try:
        while not query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type]
            if stop is not None and stop.is_set():
                query.stop()
                return
    except StreamingQueryException as error:
        if batches.exceeded is not None:
            raise batches.exceeded from None
        raise stopped("stream", error, fix="the checkpoint is kept: mend the cause and start it again") from error


class _Batches:
    """What happens to each micro-batch, and the sum of what happened."""

    def __init__(
        self,
        plan: Plan,
        outlets: Mapping[int, Target],
        scratch: str,
        journal: Journal,
        state: Rounds | None,
        direct: DirectStream | None,
        on_batch: Callable[[Summary], None] | None,
    ) -> None:
        self.plan, self.targets, self.scratch, self.journal, self.on_batch = plan, outlets, scratch, journal, on_batch
        self.state, self.direct = state, direct
        # What a window looks at must be whole: families are lowered batch by batch.
        self.lowers = state is None and bool(Places.of(plan).families)
        self.all_targets = outlets if state is None else state.targets(outlets)
        self.result = RunResult(Summary(plan.name), {outlet.channel: [] for outlet in plan.outlets})
        self.query: StreamingQuery | None = None
        self.waiting: dict[int, tuple[Summary, Kept]] = {}
        self.exceeded: BudgetExceeded | None = None

    def run(self, data: DataFrame, number: int) -> None:
        started = time.monotonic()
        # The same checkpoint is the same query; another stream of this app must not replace its batches.
        query = str(data.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))[:8]
        staging = Staging(f"{self.plan.name}-{query}-{number:09d}", self.scratch, self.journal.staging)
        known = self.journal.find(number, query)
        if known is not None:
            kept = publish(known, self.all_targets, replace(staging, key=known.key), again=True)
            waiting = self.state.publish(number, known) if self.state is not None else {}
            self._add(self._summary(known.counts, waiting, started, known.counts.received), kept)
            return
        record = partial(self.journal.write, number)
        try:
            if self.direct is not None:
                self._add_direct(self.direct, number, staging, started, record)
                return
            if self.state is None:
                rows = lower(self.plan, data) if self.lowers else data
                done = execute(rows, self.plan, self.targets, staging, record=record)
            else:
                done = self.state.run(data, number, self.targets, staging, record=record)
        except BudgetExceeded as error:
            self.exceeded = error
            raise
        intent, kept = done.intent, done.kept
        show(kept, self.targets)
        summary = self._summary(intent.counts, done.waiting, started, intent.counts.received)
        self.waiting[number] = (summary, kept)
        self.settle()

    def _add_direct(
        self, direct: DirectStream, number: int, staging: Staging, started: float, record: Callable[[Intent], None]
    ) -> None:
        intent, received = direct.compute(number, staging)
        kept = finish(intent, self.plan, self.targets, staging, record=record)
        show(kept, self.targets)
        self._add(self._summary(intent.counts, {}, started, received), kept)

    def finish(self, nothing: DataFrame) -> None:
        """What steps do when the stream is stopped; it is no batch, but counted like one."""
        started = time.monotonic()
        done = self.state.finish(nothing, self.targets, self._stop_staging()) if self.state is not None else None
        if done is not None:
            show(done.kept, self.targets)
            self._add(self._summary(done.intent.counts, done.waiting, started), done.kept)

    def finish_again(self) -> None:
        if self.state is not None:
            self.state.finish_again(self.targets, self._stop_staging())

    def _stop_staging(self) -> Staging:
        return Staging(f"{self.plan.name}-stop-{uuid.uuid4().hex[:8]}", self.scratch, self.journal.staging)

    def _summary(self, counts: Counts, waiting: Mapping[str, int], started: float, received: int = 0) -> Summary:
        return summarized(self.plan, counts, received, time.monotonic() - started, waiting)

    def settle(self, last: bool = False) -> None:
        """Add up the batches whose progress Spark has reported: only then is it known how many messages came in.

        A query that is stopped may have published a batch without a word: at the end it is added as it was counted.
        """
        for progress in self.query.recentProgress if self.query is not None else ():
            if progress.batchId in self.waiting and progress.observedMetrics:
                summary, kept = self.waiting.pop(progress.batchId)
                self._add(replace(summary, received=_received(progress)), kept)
        while last and self.waiting:
            summary, kept = self.waiting.pop(min(self.waiting))
            self._add(summary, kept)

    def _add(self, summary: Summary, kept: Kept) -> None:
        self.result.add(summary, kept)
        if self.on_batch:
            self.on_batch(self.result.summary)


def _received(progress: Any) -> int:
    metrics = progress.observedMetrics
    return sum(row[_RECEIVED] for name, row in metrics.items() if name.startswith(_RECEIVED))

"""Run an app as a stream: the same plan over micro-batches, one query whatever the number of branches and sinks."""

from __future__ import annotations

import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.endpoints.simple import Frame
from penstock.envelope import WAITING
from penstock.errors import BadEndpoint, BudgetExceeded
from penstock.patterns.key import HOLD
from penstock.plan.plan import Plan
from penstock.route.app import App
from penstock.spark.checkpoint import check_whole, owned, state_of
from penstock.spark.execute import Executed, finish
from penstock.spark.failure import stopped
from penstock.spark.passes import Passes
from penstock.spark.read.arrive import Reading, check_beginnings, check_files, check_sources, stream_of
from penstock.spark.read.files import BYTES_PER_BATCH
from penstock.spark.read.source import ROWS_PER_BATCH
from penstock.spark.read.ticks import with_ticks
from penstock.spark.run import RunResult, summarized
from penstock.spark.session import session
from penstock.spark.ship import ship
from penstock.spark.state.table import StateTable
from penstock.spark.tasks.readers import Arrivals
from penstock.spark.tasks.run import TaskRun
from penstock.spark.tasks.stream import TaskStream
from penstock.spark.upgrade import NOTHING, check_and_record, record
from penstock.spark.write.connections import keeping_connections
from penstock.spark.write.console import show
from penstock.spark.write.intent import Intent, Journal
from penstock.spark.write.outlets import targets
from penstock.spark.write.preparing import prepared
from penstock.spark.write.publish import publish
from penstock.spark.write.staging import Staging
from penstock.summary import Summary

POLL_SECONDS = 0.2


@keeping_connections()
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
    buckets: int | None = None,
) -> RunResult:
    """Micro-batches until stopped, or until what is there now is done (`once`).

    The checkpoint directory holds how far the stream has come: the same one continues, a new one starts afresh.
    Without one, the position is forgotten when the run ends. `on_change` is told in one line what is different from the
    app that ran there before; a difference with which it cannot go on is an error. The keys of a step that remembers
    are divided into so many `buckets`, a task each; a stream keeps the number that it began with.
    """
    plan = app.plan
    check_sources(plan.entries)
    with ExitStack() as held:
        scratch = held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True))
        place = os.path.abspath(checkpoint) if checkpoint else os.path.join(scratch, "checkpoint")
        held.enter_context(owned(place, f"a stream of app {app.name!r}"))
        check_whole(place)
        outlets = prepared(targets(plan))
        spark = spark or session(app.name)
        ship(spark)
        reading = Reading(spark, os.path.join(place, "penstock-sources"), rows_per_batch, bytes_per_batch)
        state = Passes(plan, StateTable(state_of(place), HOLD, buckets)) if plan.remembers else None
        journal = Journal(place)
        check_beginnings(plan.entries, reading, journal.has_begun, journal.has_batches)
        every = outlets if state is None else state.targets(outlets)
        check_files(plan.entries, streaming=True)
        sources = {number: stream_of(entry, reading) for number, entry in enumerate(plan.entries)
                   if not isinstance(entry.source, Frame)}  # fmt: skip
        stream = TaskStream(TaskRun(spark, plan, every, sources), sources, os.path.join(reading.notes, "batch"))
        batches = _Batches(stream, journal, scratch, state, on_batch)
        batches.finish_again()
        data = stream.data()
        changed = _changes_since_last_run(plan, place, journal, state)
        if changed and on_change:
            on_change(changed)
        if state is not None:
            data = with_ticks(data, spark, state.table.directory)
        _wait(_start(app, data, batches, place, once, trigger), batches, stop)
        batches.finish()
        return batches.result.advised(plan)


def _changes_since_last_run(plan: Plan, place: str, journal: Journal, state: Passes | None) -> str | None:
    """Compare the app with the one that ran at this checkpoint before; returns the changes in one line."""
    table = state.table if state is not None else None
    kept = table or (StateTable(state_of(place), HOLD) if os.path.isdir(state_of(place)) else None)
    if kept is not None:
        kept.check_waiting(journal.notes_after)
    contents = kept.contents(journal.notes_after) if kept is not None else NOTHING
    return check_and_record(place, plan, record(plan, table), contents)


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
                with batches.under_way:  # it has stopped when its tasks have
                    return
    except StreamingQueryException as error:
        if batches.exceeded is not None:
            raise batches.exceeded from None
        raise stopped("stream", error, fix="the checkpoint is kept: mend the cause and start it again") from error


class _Batches:
    """Runs and publishes each micro-batch, and adds up the results."""

    def __init__(
        self,
        stream: TaskStream,
        journal: Journal,
        scratch: str,
        state: Passes | None,
        on_batch: Callable[[Summary], None] | None,
    ) -> None:
        self.stream, self.journal, self.scratch, self.state, self.on_batch = stream, journal, scratch, state, on_batch
        self.plan, self.targets = stream.run.plan, stream.run.targets
        self.result = RunResult(Summary(self.plan.name), {outlet.channel: [] for outlet in self.plan.outlets})
        self.exceeded: BudgetExceeded | None = None
        self.under_way = threading.Lock()

    def run(self, data: DataFrame, number: int) -> None:
        with self.under_way:
            self._run(data, number)

    def _run(self, data: DataFrame, number: int) -> None:
        started = time.monotonic()
        # The same checkpoint is the same query; another stream of this app must not replace its batches.
        query = str(data.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))[:8]
        staging = Staging(f"{self.plan.name}-{query}-{number:09d}", self.scratch, self.journal.staging)
        arrivals = self.stream.arrivals(data)
        known = self.journal.find(number, query)
        done = self._computed(number, arrivals, staging) if known is None else self._published(number, known, staging)
        if known is None:
            show(done.kept, self.targets)
        with suppress(Exception):  # a stream that is stopping has no job for this, and its batch is published
            self.stream.show(data, done.intent.counts.steps)
        self._add(done, started)

    def _published(self, number: int, known: Intent, staging: Staging) -> Executed:
        """Publish a batch again that was computed before."""
        kept = publish(known, self.targets, replace(staging, key=known.key), again=True)
        waiting = self.state.publish(number, known) if self.state is not None else {}
        return Executed(known, known.counts.received, kept, staging, waiting)

    def _computed(self, number: int, arrivals: Arrivals, staging: Staging) -> Executed:
        record = partial(self.journal.write, number)
        try:
            if self.state is not None:
                return self.state.run(self.stream.run, arrivals, number, staging, record=record)
            intent, received = self.stream.run.compute(arrivals, staging, timed=True)
            return Executed(intent, received, finish(intent, self.plan, self.targets, staging, record=record), staging)
        except BudgetExceeded as error:
            self.exceeded = error
            raise

    def finish(self) -> None:
        """Let steps flush or discard what they hold when the stream is stopped; this counts like a batch.

        Not before the last batch is published: until then the state does not have what that batch leaves behind.
        """
        started = time.monotonic()
        if self.state is not None:
            newest = self.state.table.newest
            for number in self.journal.after(-1 if newest is None else newest):
                raise BadEndpoint(f"batch {number} is computed, and not published to its end",
                                  fix="start the stream again with its checkpoint: that comes first")  # fmt: skip
        done = self.state.finish(self.stream.run, self._stop_staging()) if self.state is not None else None
        if done is not None:
            show(done.kept, self.targets)
            self._add(done, started)

    def finish_again(self) -> None:
        if self.state is not None:
            outlets = {place: target for place, target in self.targets.items() if place != WAITING}
            self.state.finish_again(outlets, self._stop_staging())

    def _stop_staging(self) -> Staging:
        return Staging(f"{self.plan.name}-stop-{uuid.uuid4().hex[:8]}", self.scratch, self.journal.staging)

    def _add(self, done: Executed, started: float) -> None:
        seconds = time.monotonic() - started
        self.result.add(summarized(self.plan, done.intent.counts, done.received, seconds, done.waiting), done.kept)
        if self.on_batch:
            self.on_batch(self.result.summary)

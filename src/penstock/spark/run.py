"""Run an app over what its sources hold now."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.kernel.state.algorithm import Moment
from penstock.message import DeadLetter, Message
from penstock.patterns.key import FLUSH
from penstock.plan.plan import Plan
from penstock.plan.waiting import waits
from penstock.route.app import App
from penstock.spark.all_or_nothing import computed
from penstock.spark.execute import Executed, finish
from penstock.spark.failure import stopped
from penstock.spark.passes import Passes
from penstock.spark.read.advice import advice
from penstock.spark.read.arrive import check_sources
from penstock.spark.session import session
from penstock.spark.ship import ship
from penstock.spark.state.table import Snapshot, StateTable
from penstock.spark.tasks.readers import Arrivals
from penstock.spark.tasks.run import NO_STATE, TaskRun
from penstock.spark.write.connections import keeping_connections
from penstock.spark.write.console import show
from penstock.spark.write.intent import Counts
from penstock.spark.write.outlets import Target, targets
from penstock.spark.write.preparing import prepared
from penstock.spark.write.publish import Kept
from penstock.spark.write.staging import Staging
from penstock.summary import Latency, Summary


@dataclass
class RunResult:
    """What a run did, and the messages of sinks that keep them in the driver."""

    summary: Summary
    channels: dict[str, list[Message]] = field(default_factory=dict)
    dead: list[DeadLetter] = field(default_factory=list)

    def add(self, summary: Summary, kept: Kept) -> None:
        self.summary = self.summary + summary
        for channel, messages in kept.messages.items():
            self.channels.setdefault(channel, []).extend(messages)
        self.dead.extend(kept.dead)

    def advised(self, plan: Plan) -> RunResult:
        self.summary = replace(self.summary, advice=advice(plan, self.summary))
        return self


BUCKET_BYTES, LARGE_BUCKET_BYTES, FEW_BUCKETS = 32 << 20, 256 << 20, 64
"""About how many bytes of what is read go to one task of a step that remembers. Few are sorted fastest; but a task that
reads keeps room for every bucket, so where they would be many, they are larger."""


@keeping_connections()
def run_batch(
    app: App, spark: SparkSession | None = None, progress: Callable[[Summary], None] | None = None
) -> RunResult:
    """One pass over all sources; every mistake in the routes is raised before Spark starts."""
    plan = app.plan
    check_sources(plan.entries)
    outlets = prepared(targets(plan))
    spark = spark or session(app.name)
    ship(spark)
    started = time.monotonic()
    run = f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:8]}"
    scratch = tempfile.mkdtemp(prefix="penstock-")
    result = RunResult(Summary(app.name), {outlet.channel: [] for outlet in plan.outlets})
    try:
        for done in _passes(plan, outlets, spark, f"{app.name}-{run}", scratch):
            seconds = time.monotonic() - started
            started = time.monotonic()
            show(done.kept, outlets)
            result.add(summarized(plan, done.intent.counts, done.received, seconds, done.waiting), done.kept)
            if progress:
                progress(result.summary)
    except (PySparkException, Py4JJavaError) as error:
        raise stopped("run", error, fix="nothing was written: mend the cause and run it again") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return result.advised(plan)


def _passes(
    plan: Plan, outlets: Mapping[int, Target], spark: SparkSession, key: str, scratch: str
) -> Iterator[Executed]:
    """Run one pass over everything, and more passes while messages wait to be tried again."""
    passes = Passes(plan, StateTable(os.path.join(scratch, "state"), FLUSH)) if waits(plan) else None
    run = TaskRun(spark, plan, outlets if passes is None else passes.targets(outlets))
    arrivals = run.everything()
    if passes is None:
        staging = Staging(key, scratch, scratch)
        snapshot = _nothing_yet(run, arrivals) if plan.remembers else NO_STATE
        intent, received = run.compute(arrivals, staging, snapshot)
        yield Executed(intent, received, finish(intent, plan, outlets, staging, first=True), staging)
    elif plan.error_budget is not None:  # whether the run stays within it is known only at its end
        whole = computed(run, arrivals, passes, key, scratch, scratch)
        yield Executed(whole.intent, whole.received, whole.publish(first=True), whole.stagings[0], whole.waiting)
    else:
        yield from passes.until_quiet(run, arrivals, key, scratch)


def _nothing_yet(run: TaskRun, arrivals: Arrivals) -> Snapshot:
    """The empty state before the only pass of a run, which leaves no state behind."""
    size = sum(piece.size for one in arrivals.given for piece in one.pieces)
    wanted = max(min(-(-size // BUCKET_BYTES), FEW_BUCKETS), size // LARGE_BUCKET_BYTES, 1)
    buckets = -(-wanted // run.cores) * run.cores
    return Snapshot(None, buckets, Moment(time.time_ns() // 1000, 0, True), FLUSH, 0, (), {}, {})


def summarized(
    plan: Plan, counts: Counts, received: int, seconds: float, waiting: Mapping[str, int] | None = None
) -> Summary:
    """The summary of a pass that was just published; `waiting` is how many messages wait at each step after it."""
    now = time.time()
    arrived = {title: step.received for title, step in counts.steps.items()}
    return Summary(
        plan.name, 1, received, counts.copied, counts.delivered, counts.filtered, counts.dead, counts.held, seconds,
        counts.steps, _latency(counts.delivered, counts.times, now), waiting or {},
        _latency(arrived, counts.step_times, now),
    )  # fmt: skip


def _latency(messages: Mapping[str, int], times: Mapping[str, tuple[float, float]], now: float) -> dict[str, Latency]:
    return {
        name: Latency(count, count * (now - mean), now - earliest, now - earliest)
        for name, (mean, earliest) in times.items()
        if (count := messages[name])
    }

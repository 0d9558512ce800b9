"""Run an app over what its sources hold now."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession

from penstock.message import DeadLetter, Message
from penstock.patterns.key import FLUSH
from penstock.plan.plan import Plan
from penstock.route.app import App
from penstock.spark.check import check
from penstock.spark.direct.gathering import is_small
from penstock.spark.direct.run import DirectRun
from penstock.spark.direct.steps import is_direct
from penstock.spark.execute import Executed, execute, finish
from penstock.spark.failure import stopped
from penstock.spark.lower import entered, lower
from penstock.spark.read.arrive import Reading, arriving, check_sources
from penstock.spark.received import observed, received
from penstock.spark.rounds import Rounds
from penstock.spark.session import session
from penstock.spark.ship import ship
from penstock.spark.state.table import StateTable
from penstock.spark.together import computed
from penstock.spark.write.console import show
from penstock.spark.write.held import holding
from penstock.spark.write.intent import Counts
from penstock.spark.write.outlets import Target, targets
from penstock.spark.write.publish import Kept
from penstock.spark.write.ready import made_ready
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


@holding()
def run_batch(
    app: App, spark: SparkSession | None = None, progress: Callable[[Summary], None] | None = None
) -> RunResult:
    """One pass over all sources; every mistake in the routes is raised before Spark starts."""
    plan = app.plan
    check(plan)
    check_sources(plan.entries)
    outlets = targets(plan)
    outlets = made_ready(outlets)
    spark = spark or session(app.name)
    ship(spark)
    started = time.monotonic()
    run = f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:8]}"
    scratch = tempfile.mkdtemp(prefix="penstock-")
    result = RunResult(Summary(app.name), {outlet.channel: [] for outlet in plan.outlets})
    try:
        if is_direct(plan, outlets) and (not plan.remembers or is_small(plan, spark)):
            _add_direct(result, plan, outlets, spark, Staging(f"{app.name}-{run}", scratch, scratch), started)
            if progress:
                progress(result.summary)
            return result
        reading = Reading(spark)
        counted = {entry.route: observed(arriving(entry, reading)) for entry in plan.entries}
        data = entered(plan, {route: rows for route, (rows, _) in counted.items()})
        for number, done in enumerate(_passes(plan, data, outlets, f"{app.name}-{run}", scratch)):
            total = 0 if number else received((counter for _, counter in counted.values()), done.query)
            summary = summarized(plan, done.intent.counts, total, time.monotonic() - started, done.waiting)
            started = time.monotonic()
            show(done.kept, outlets)
            result.add(summary, done.kept)
            if progress:
                progress(result.summary)
    except (PythonException, SparkRuntimeException, Py4JJavaError) as error:
        raise stopped("run", error, fix="nothing was written: mend the cause and run it again") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return result


def _add_direct(
    result: RunResult, plan: Plan, outlets: Mapping[int, Target], spark: SparkSession, staging: Staging, started: float
) -> None:
    intent, total = DirectRun(spark, plan, outlets).compute_all(staging)
    kept = finish(intent, plan, outlets, staging, first=True)
    show(kept, outlets)
    result.add(summarized(plan, intent.counts, total, time.monotonic() - started), kept)


def _passes(plan: Plan, data: DataFrame, outlets: Mapping[int, Target], key: str, scratch: str) -> Iterator[Executed]:
    """One pass over everything; more of them while messages wait to be tried again."""
    if plan.remembers and plan.error_budget is not None:
        # Whether the run stays within its budget is known only at its end.
        whole = computed(plan, data, outlets, key, scratch, scratch)
        kept = whole.publish(first=True)
        return iter([Executed(whole.intent, kept, whole.query, whole.stagings[0], whole.waiting)])
    if plan.remembers:
        state = StateTable(os.path.join(scratch, "state"), FLUSH)
        return Rounds(plan, state).until_quiet(data, outlets, key, scratch)
    return iter([execute(lower(plan, data), plan, outlets, Staging(key, scratch, scratch), first=True)])


def summarized(
    plan: Plan, counts: Counts, received: int, seconds: float, waiting: Mapping[str, int] | None = None
) -> Summary:
    """The numbers of a pass that was published just now; `waiting` is who waits at each step after it."""
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

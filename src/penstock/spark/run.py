"""Run an app over what its sources hold now."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from penstock.message import DeadLetter, Message
from penstock.plan.plan import Plan
from penstock.route.app import App
from penstock.spark.check import check
from penstock.spark.execute import Counts, execute
from penstock.spark.failure import stopped
from penstock.spark.lower import lower
from penstock.spark.read.arrive import Reading, arriving
from penstock.spark.session import session
from penstock.spark.ship import ship
from penstock.spark.write.console import show
from penstock.spark.write.outlets import targets
from penstock.spark.write.publish import Kept
from penstock.summary import Summary


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


def run_batch(
    app: App, spark: SparkSession | None = None, progress: Callable[[Summary], None] | None = None
) -> RunResult:
    """One pass over all sources; every mistake in the routes is raised before Spark starts."""
    plan = app.plan
    check(plan)
    outlets = targets(plan)
    spark = spark or session(app.name)
    ship(spark)
    started = time.monotonic()
    run = f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:8]}"
    scratch = tempfile.mkdtemp(prefix="penstock-")
    try:
        reading = Reading(spark)
        received = {entry.route: Observation() for entry in plan.entries}
        sources = {
            entry.route: arriving(entry, reading).observe(received[entry.route], F.count(F.lit(1)).alias("received"))
            for entry in plan.entries
        }
        counts, kept = execute(lower(plan, sources), plan, outlets, f"{app.name}-{run}", run, scratch, first=True)
        total = sum(observation.get["received"] for observation in received.values())
    except (PythonException, SparkRuntimeException, Py4JJavaError) as error:
        raise stopped("run", error, fix="nothing was written: mend the cause and run it again") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    show(kept, outlets)
    summary = summarized(plan, counts, total, time.monotonic() - started)
    if progress:
        progress(summary)
    result = RunResult(Summary(app.name), {outlet.channel: [] for outlet in plan.outlets})
    result.add(summary, kept)
    return result


def summarized(plan: Plan, counts: Counts, received: int, seconds: float) -> Summary:
    return Summary(plan.name, 1, received, counts.copied, counts.delivered, counts.filtered, counts.dead, 0, seconds)

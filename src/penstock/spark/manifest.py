"""What the tasks of a pass report: the files they staged, and what they counted."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyspark import SparkContext, SparkStageInfo
from pyspark.sql import Row

from penstock.plan.plan import Plan
from penstock.spark.tally import observed_times, steps
from penstock.spark.times import Times
from penstock.spark.write.intent import Counts, StagedFile
from penstock.spark.write.outlets import Target
from penstock.spark.write.staging import Staging

_PATIENCE_SECONDS = 10.0


def reported(run: Callable[[], list[Row]], targets: Mapping[int, Target], staging: Staging) -> list[Row]:
    """Run the tasks. What earlier attempts left is removed before, and what these leave if they fail."""
    forget(targets, staging)
    context = SparkContext._active_spark_context
    assert context is not None
    tag = f"penstock-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        rows = run()
        for row in rows:
            if row.place in targets:
                staging.check_visible(targets[row.place], row.path)
    except BaseException as error:
        # Spark's own end of an interrupted call may fail, too, and hide why.
        interrupted = isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)
        if interrupted:
            _stop_tasks(context, tag)
        forget(targets, staging)
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        with suppress(Exception):
            context.removeJobTag(tag)
    return rows


def _stop_tasks(context: SparkContext, tag: str) -> None:
    """Cancel the jobs of this run, and wait until none of their tasks writes any more.

    In a thread of its own: the one that was interrupted has lost its connection to Java.
    """

    def stop() -> None:
        with suppress(Exception):
            tracker = context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
            stages = [stage for job in jobs if job is not None for stage in job.stageIds]
            context.cancelJobsWithTag(tag)
            until = time.monotonic() + _PATIENCE_SECONDS
            while time.monotonic() < until and any(_is_running(tracker.getStageInfo(stage)) for stage in stages):
                time.sleep(0.05)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    thread.join(_PATIENCE_SECONDS)


def _is_running(stage: SparkStageInfo | None) -> bool:
    return stage is not None and stage.numActiveTasks > 0


def staged(rows: Sequence[Row], targets: Mapping[int, Target], staging: Staging) -> tuple[StagedFile, ...]:
    return tuple(
        StagedFile(target.name, row.path, staging.final(target, row.partition), row.rows, row.partition)
        for row in rows
        if (target := targets.get(row.place)) is not None
    )


def forget(targets: Mapping[int, Target], staging: Staging) -> None:
    """Remove what a pass has staged."""
    for target in targets.values():
        staging.clear(target)


def counts(
    plan: Plan,
    observed: Mapping[str, Any],
    released: Mapping[str, int] | None = None,
    notes: Sequence[Mapping[str, Any]] = (),
) -> Counts:
    counted, came = steps(plan, observed, released or {}, notes)
    delivered = {outlet.channel: observed_times(observed, f"sink {outlet.channel}") for outlet in plan.outlets}
    return Counts(
        {name: times.messages for name, times in delivered.items()},
        {name: step.filtered for name, step in counted.items() if step.filtered},
        sum(step.dead for step in counted.values()),
        sum(step.copied for step in counted.values()),
        sum(step.held for step in counted.values()),
        counted,
        _known(delivered),
        _known(came),
    )


def _known(found: Mapping[str, Times]) -> dict[str, tuple[float, float]]:
    return {name: known for name, times in found.items() if (known := times.known) is not None}

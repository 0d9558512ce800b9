"""What the tasks of a pass report: the files they staged, and what they counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Row

from penstock.plan.plan import Plan
from penstock.spark.tally import observed_times, steps
from penstock.spark.times import Times
from penstock.spark.write.intent import Counts, StagedFile
from penstock.spark.write.outlets import Target
from penstock.spark.write.staging import Staging


def reported(run: Callable[[], list[Row]], targets: Mapping[int, Target], staging: Staging) -> list[Row]:
    """Run the tasks. What earlier attempts left is removed before, and what these leave if they fail."""
    forget(targets, staging)
    try:
        rows = run()
        for row in rows:
            if row.place in targets:
                staging.check_visible(targets[row.place], row.path)
    except BaseException:
        forget(targets, staging)
        raise
    return rows


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

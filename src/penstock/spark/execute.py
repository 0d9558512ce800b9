"""One pass over a batch of messages: computed once, counted on the way, written by one job."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from penstock.delivery import EXACTLY_ONCE, includes
from penstock.endpoints.simple import Void
from penstock.plan.plan import Plan
from penstock.spark.frame import AT, BODY, COPIES, DEAD, NOTE, Places
from penstock.spark.write.encode import encoded
from penstock.spark.write.intent import Counts, Intent, StagedFile
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging
from penstock.spark.write.task import MANIFEST, TaskWriter


def count_columns(plan: Plan, places: Places) -> list[Column]:
    """Counts of every place, and the bytes that go nowhere: what a void sink gets is computed like any other body."""
    at = F.col(AT)
    ended = {**{f"sink {name}": number for name, number in places.sinks.items()},
             **{f"filtered {name}": number for name, number in places.filters.items()}, "dead": DEAD}  # fmt: skip
    counts = [F.count_if(at == number).alias(name) for name, number in ended.items()]
    void = [places.sinks[outlet.channel] for outlet in plan.outlets if isinstance(outlet.sink, Void)]
    size = [F.sum(F.when(at.isin(*void), F.octet_length(BODY))).alias("void bytes")] if void else []
    return [*counts, F.sum(COPIES).alias("copied"), *size]


def execute(
    data: DataFrame,
    plan: Plan,
    targets: Mapping[int, Target],
    staging: Staging,
    first: bool = False,
    record: Callable[[Intent], None] | None = None,
) -> tuple[Counts, Kept]:
    """Compute the lowered messages, write down what will be published (`record`), and publish it.

    Without a sink that promises exactly once there is nothing to write down: a crash repeats the batch.
    """
    intent = compute(data, plan, targets, staging)
    recorded = record is not None and (
        _has_state(plan) or any(includes(target.delivery, EXACTLY_ONCE) for target in targets.values())
    )
    if record is not None and recorded:
        lasting = {target.name for target in targets.values() if target.lasts}
        sealed = msgspec.structs.replace(intent, files=tuple(file for file in intent.files if file.channel in lasting))
        staging.seal(targets.values(), sealed.files)
        record(sealed)
    try:
        return intent.counts, publish(intent, targets, staging, first)
    except BaseException:
        if not recorded:  # nobody will publish it again
            _forget(targets, staging)
        raise


def _has_state(plan: Plan) -> bool:
    return any(stage.node.stateful for stage in plan.stages())


def compute(data: DataFrame, plan: Plan, targets: Mapping[int, Target], staging: Staging) -> Intent:
    """One job: staged files, notes and counts. No sink changes."""
    places, observation = Places.of(plan), Observation()
    rows, columns = encoded(data, plan, targets), count_columns(plan, places)
    if not targets and not _has_state(plan):
        return Intent(staging.key, _counts(rows.agg(*columns).collect()[0].asDict(), places))
    observed = rows.observe(observation, *columns).drop(COPIES)
    _forget(targets, staging)
    try:
        chosen = observed.filter(F.col(AT).isin(*targets, NOTE))
        manifest = chosen.mapInArrow(TaskWriter(targets, staging), MANIFEST).collect()
    except BaseException:
        _forget(targets, staging)
        raise
    files = tuple(
        StagedFile(target.name, row.path, staging.final(target, row.partition), row.rows, row.partition)
        for row in manifest
        if (target := targets.get(row.place)) is not None
    )
    notes = tuple(row.path for row in manifest if row.place == NOTE)
    return Intent(staging.key, _counts(observation.get, places), files, notes)


def _forget(targets: Mapping[int, Target], staging: Staging) -> None:
    for target in targets.values():
        staging.clear(target)


def _counts(observed: Mapping[str, int], places: Places) -> Counts:
    return Counts(
        {name: observed[f"sink {name}"] or 0 for name in places.sinks},
        {name: number for name in places.filters if (number := observed[f"filtered {name}"])},
        observed["dead"] or 0,
        observed["copied"] or 0,
    )

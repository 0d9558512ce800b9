"""One pass over a batch of messages: computed once, counted on the way, written by one job."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from penstock.delivery import EXACTLY_ONCE, includes
from penstock.endpoints.simple import Void
from penstock.plan.plan import Plan
from penstock.spark.budget import check_budget
from penstock.spark.frame import AT, BODY, COPIES, DEAD, NOTE, WAITING, Places
from penstock.spark.state.waiting import CHANNEL, DUE
from penstock.spark.write.encode import encoded
from penstock.spark.write.intent import Counts, Intent, StagedFile
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging
from penstock.spark.write.task import MANIFEST, TaskWriter


@dataclass(frozen=True)
class Executed:
    """What a pass will have done, what it left in the driver, and the query that ran."""

    intent: Intent
    kept: Kept
    query: DataFrame
    staging: Staging


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
    released: Observation | None = None,
) -> Executed:
    """Compute the lowered messages, write down what will be published (`record`), and publish it.

    Without a sink that promises exactly once, and without state, there is nothing to write down: a crash repeats the
    batch.
    """
    intent, query = compute(data, plan, targets, staging, released)
    try:
        check_budget(plan, intent, targets)
    except BaseException:
        forget(targets, staging)
        raise
    recorded = record is not None and (
        plan.remembers or any(includes(target.delivery, EXACTLY_ONCE) for target in targets.values())
    )
    if record is not None and recorded:
        lasting = {target.name for target in targets.values() if target.lasts}
        sealed = msgspec.structs.replace(intent, files=tuple(file for file in intent.files if file.channel in lasting))
        staging.seal(targets.values(), sealed.files)
        record(sealed)
    try:
        return Executed(intent, publish(intent, targets, staging, first), query, staging)
    except BaseException:
        if not recorded:  # nobody will publish it again
            forget(targets, staging)
        raise


def compute(
    data: DataFrame,
    plan: Plan,
    targets: Mapping[int, Target],
    staging: Staging,
    released: Observation | None = None,
) -> tuple[Intent, DataFrame]:
    """One job: staged files, notes and counts, and the query that ran. No sink changes."""
    places, observation = Places.of(plan), Observation()
    rows, columns = encoded(data, plan, targets), count_columns(plan, places)
    if DUE in rows.columns:
        columns += _waiting_columns()
    if not targets and not plan.remembers:
        counted = rows.agg(*columns)
        return Intent(staging.key, _counts(counted.collect()[0].asDict(), places)), counted
    observed = rows.observe(observation, *columns).drop(COPIES, DUE)
    forget(targets, staging)
    try:
        chosen = observed.filter(F.col(AT).isin(*targets, NOTE))
        written = chosen.mapInArrow(TaskWriter(targets, staging), MANIFEST)
        manifest = written.collect()
        for row in manifest:
            if row.place in targets:
                staging.check_visible(targets[row.place], row.path)
    except BaseException:
        forget(targets, staging)
        raise
    files = tuple(
        StagedFile(target.name, row.path, staging.final(target, row.partition), row.rows, row.partition)
        for row in manifest
        if (target := targets.get(row.place)) is not None
    )
    notes = [row.path for row in manifest if row.place == NOTE]
    if DUE in rows.columns:
        notes.append(json.dumps(_waiting_note(observation.get, files, released.get["released"] if released else 0)))
    held = sum(json.loads(note).get("held", 0) for note in notes)
    return Intent(staging.key, _counts(observation.get, places, held), files, tuple(notes)), written


def _waiting_columns() -> list[Column]:
    waiting = F.col(AT) == WAITING
    return [
        F.count_if(waiting).alias("waiting"),
        F.min(F.when(waiting, F.col(DUE))).alias("earliest"),
        F.max(F.when(waiting, F.col(DUE))).alias("latest"),
    ]


def _waiting_note(observed: Mapping[str, int], files: tuple[StagedFile, ...], released: int) -> dict[str, Any]:
    """Who began to wait in this batch, where they are, and from when to when they are due."""
    names = [file.final for file in files if file.channel == CHANNEL]
    times = {"earliest": observed["earliest"], "latest": observed["latest"]} if names else {}
    return {"held": observed["waiting"] - released, "waiting": {"files": names, **times}}


def forget(targets: Mapping[int, Target], staging: Staging) -> None:
    """Remove what a pass has staged."""
    for target in targets.values():
        staging.clear(target)


def _counts(observed: Mapping[str, int], places: Places, held: int = 0) -> Counts:
    return Counts(
        {name: observed[f"sink {name}"] or 0 for name in places.sinks},
        {name: number for name in places.filters if (number := observed[f"filtered {name}"])},
        observed["dead"] or 0,
        observed["copied"] or 0,
        held,
    )

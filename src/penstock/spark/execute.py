"""One pass over a batch of messages: computed once, counted on the way, written by one job."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from penstock.delivery import EXACTLY_ONCE, includes
from penstock.endpoints.simple import Void
from penstock.plan.plan import Plan
from penstock.spark.budget import check_budget
from penstock.spark.frame import AT, BODY, NOTE, TIME, WAITING, Places
from penstock.spark.manifest import counts, forget, reported, staged
from penstock.spark.state.waiting import CHANNEL, DUE
from penstock.spark.tally import PLACE, tally_columns
from penstock.spark.write.encode import encoded
from penstock.spark.write.intent import Intent, StagedFile
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging
from penstock.spark.write.task import MANIFEST, TaskWriter


@dataclass(frozen=True)
class Executed:
    """What a pass will have done, what it left in the driver, the query that ran, and who waits at each step now."""

    intent: Intent
    kept: Kept
    query: DataFrame
    staging: Staging
    waiting: Mapping[str, int] = field(default_factory=dict)


def count_columns(plan: Plan, places: Places, waiting: bool = False, timed: bool = False) -> list[Column]:
    """Counts of places and steps, and the bytes that go nowhere: what a void sink gets is computed like any other body.

    `timed` also asks how old the messages are that came to every sink and every step.
    """
    void = [places.sinks[outlet.channel] for outlet in plan.outlets if isinstance(outlet.sink, Void)]
    size = [F.sum(F.when(F.col(AT).isin(*void), F.octet_length(BODY))).alias("void bytes")] if void else []
    return [*tally_columns(plan, places, waiting, timed), *size]


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

    Without a sink that promises exactly once there is nothing to write down: a crash repeats the batch.
    """
    intent, query = compute(data, plan, targets, staging, released, timed=record is not None)
    return Executed(intent, finish(intent, plan, targets, staging, first, record), query, staging)


def finish(
    intent: Intent,
    plan: Plan,
    targets: Mapping[int, Target],
    staging: Staging,
    first: bool = False,
    record: Callable[[Intent], None] | None = None,
) -> Kept:
    """Write down what a pass will have done, and publish it, if it is within its budget."""
    try:
        check_budget(plan, intent, targets)
    except BaseException:
        forget(targets, staging)
        raise
    once = plan.remembers or any(includes(target.delivery, EXACTLY_ONCE) for target in targets.values())
    recorded = record is not None and once
    if record is not None and recorded:
        lasting = {target.name for target in targets.values() if target.lasts}
        sealed = msgspec.structs.replace(intent, files=tuple(file for file in intent.files if file.channel in lasting))
        staging.seal(targets.values(), sealed.files)
        record(sealed)
    try:
        return publish(intent, targets, staging, first)
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
    timed: bool = False,
) -> tuple[Intent, DataFrame]:
    """One job: staged files, notes and counts, and the query that ran. No sink changes."""
    places, observation, waiting = Places.of(plan), Observation(), DUE in data.columns
    rows = encoded(data, plan, targets, timed)
    columns = count_columns(plan, places, waiting, timed)
    if waiting:
        columns += _waiting_columns()
    if not targets and not plan.remembers:
        counted = rows.agg(*columns)
        return Intent(staging.key, counts(plan, counted.collect()[0].asDict())), counted
    observed = rows.observe(observation, *columns).drop(PLACE, TIME, DUE, *places.visited)
    written = observed.filter(F.col(AT).isin(*targets, NOTE)).mapInArrow(TaskWriter(targets, staging), MANIFEST)
    manifest = reported(written.collect, targets, staging)
    files = staged(manifest, targets, staging)
    notes = [row.path for row in manifest if row.place == NOTE]
    back = released.get if released is not None else {}
    if waiting:
        notes.append(json.dumps(_waiting_note(places, observation.get, files, back)))
    found = counts(plan, observation.get, back, [json.loads(note) for note in notes])
    return Intent(staging.key, found, files, tuple(notes)), written


def _waiting_columns() -> list[Column]:
    waiting = F.col(AT) == WAITING
    return [
        F.min(F.when(waiting, F.col(DUE))).alias("earliest"),
        F.max(F.when(waiting, F.col(DUE))).alias("latest"),
    ]


def _waiting_note(
    places: Places, observed: Mapping[str, int], files: tuple[StagedFile, ...], released: Mapping[str, int]
) -> dict[str, Any]:
    """Who began to wait in this batch and who ceased to, by step, where they are, and when they are due."""
    names = [file.final for file in files if file.channel == CHANNEL]
    times = {"earliest": observed["earliest"], "latest": observed["latest"]} if names else {}
    more = {title: observed[f"waiting {title}"] - released.get(title, 0) for title in places.resumes}
    return {"waits": {title: count for title, count in more.items() if count}, "waiting": {"files": names, **times}}

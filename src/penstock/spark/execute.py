"""One pass over a batch of messages: computed once, counted on the way, written by one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from penstock.endpoints.simple import Void
from penstock.plan.plan import Plan
from penstock.spark.frame import AT, BODY, COPIES, DEAD, Places
from penstock.spark.write.encode import encoded
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, Staged, check_visible, discard, publish
from penstock.spark.write.task import MANIFEST, TaskWriter


@dataclass(frozen=True)
class Counts:
    """Where the messages of one pass ended."""

    delivered: Mapping[str, int]
    filtered: Mapping[str, int]
    dead: int
    copied: int


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
    data: DataFrame, plan: Plan, targets: Mapping[int, Target], key: str, run: str, scratch: str, first: bool
) -> tuple[Counts, Kept]:
    """Write the lowered messages and publish them under the key."""
    places, observation = Places.of(plan), Observation()
    rows, columns = encoded(data, plan, targets), count_columns(plan, places)
    if not targets:
        return _counts(rows.agg(*columns).collect()[0].asDict(), places), Kept()
    observed = rows.observe(observation, *columns).drop(COPIES)
    try:
        written = observed.filter(F.col(AT).isin(*targets)).mapInArrow(TaskWriter(targets, run, scratch), MANIFEST)
        manifest = [Staged(*row) for row in written.collect()]
        check_visible(manifest, targets)
    except BaseException:
        discard(targets, run, scratch)
        raise
    kept = publish(manifest, targets, key, run, scratch, first)
    return _counts(observation.get, places), kept


def _counts(observed: Mapping[str, int], places: Places) -> Counts:
    return Counts(
        {name: observed[f"sink {name}"] or 0 for name in places.sinks},
        {name: number for name in places.filters if (number := observed[f"filtered {name}"])},
        observed["dead"] or 0,
        observed["copied"] or 0,
    )

"""Run an app in the tasks that read its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from pyspark.sql import Row, SparkSession

from penstock.endpoints.files import Files
from penstock.errors import BadEndpoint
from penstock.plan.plan import Plan
from penstock.reference.run import DECODE
from penstock.spark.direct.gathering import gathered
from penstock.spark.direct.groups import GroupTask
from penstock.spark.direct.rows import GATHERED
from penstock.spark.direct.steps import visits
from penstock.spark.direct.task import DirectTask, Reader, Tally
from penstock.spark.frame import NOTE, Places
from penstock.spark.manifest import counts, reported, staged
from penstock.spark.read.files import check, placed
from penstock.spark.read.shares import shares
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.staging import Staging

BUCKET_BYTES = 256 * 1024 * 1024
"""Of all that is read, about: what a task of the second job groups."""


def compute_direct(
    spark: SparkSession, plan: Plan, targets: Mapping[int, Target], staging: Staging
) -> tuple[Intent, int]:
    """One job, or two around an aggregator: staged files and counts, and how many messages came in. No sink changes."""
    places = Places.of(plan)
    for entry in plan.entries:
        assert isinstance(entry.source, Files)
        check(entry.source, entry, streaming=False)
    readers = [Reader(placed(entry), places.routes[entry.route]) for entry in plan.entries]
    try:
        chunks = [(number, chunk) for number, reader in enumerate(readers) for chunk in reader.files.found()]
    except OSError as error:  # a file that has gone meanwhile
        raise BadEndpoint(f"cannot read {error.filename}: {error}") from None
    cores = spark.sparkContext.defaultParallelism
    shared = shares(chunks, lambda one: one[1].size, cores)
    gathering = gathered(plan)
    steps = visits(plan)
    buckets = max(cores, sum(chunk.size for _, chunk in chunks) // BUCKET_BYTES)
    task = DirectTask(readers, shared, steps, targets, staging, datetime.now(UTC), gathering, buckets)

    def run() -> list[Row]:
        rows = _tasks(spark, task, len(shared))
        paths = _tally(rows).gathered
        if gathering is None or not paths:
            return rows
        behind, start = steps[plan.stages().index(gathering.stage) + 1 :], places.routes[gathering.stage.route]
        second = GroupTask(gathering, start, paths, behind, targets, staging, len(shared))
        return rows + _tasks(spark, second, buckets)

    manifest = reported(run, targets, staging)
    tally = _tally(manifest)
    merged = tally.places[GATHERED] - tally.groups
    notes = [{"step": gathering.stage.title, "held": 0, "merged": merged}] if gathering is not None else []
    found = counts(plan, _observed(plan, places, tally), notes=notes)
    return Intent(staging.key, found, staged(manifest, targets, staging)), tally.received


def _tasks(spark: SparkSession, task: Callable[[Iterable[int]], Iterator[Row]], count: int) -> list[Row]:
    """No DataFrame: to plan a query takes Spark longer than a task takes for a hundred thousand messages."""
    return spark.sparkContext.parallelize(range(count), max(count, 1)).mapPartitions(task).collect()


def _tally(manifest: Iterable[Row]) -> Tally:
    tally = Tally()
    for row in manifest:
        if row.place == NOTE:
            tally += json.loads(row.path)
    return tally


def _observed(plan: Plan, places: Places, tally: Tally) -> dict[str, int]:
    """The numbers under the names that Spark would have counted them by."""
    found = {f"sink {channel}": tally.places[place] for channel, place in places.sinks.items()}
    found |= {f"filtered {stage.title}": tally.places[places.filtered(stage)] for stage in plan.stages()}
    found |= {f"dead {entry.route}.{DECODE}": tally.bad[f"{entry.route}.{DECODE}"] for entry in plan.entries}
    found |= {f"dead {stage.title}": tally.bad[stage.title] for stage in plan.stages()}
    return found | {f"bit {number}": tally.bits[number] for number in places.marks.values()}

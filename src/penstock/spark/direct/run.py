"""Run an app in the tasks that read its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from penstock.endpoints.files import Files
from penstock.errors import BadEndpoint
from penstock.plan.plan import Plan
from penstock.reference.run import DECODE
from penstock.spark.direct.steps import visits
from penstock.spark.direct.task import DirectTask, Reader, Tally
from penstock.spark.frame import NOTE, Places
from penstock.spark.manifest import counts, reported, staged
from penstock.spark.read.files import check, placed
from penstock.spark.read.lines import CHUNK_BYTES, Chunk
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.staging import Staging


def compute_direct(
    spark: SparkSession, plan: Plan, targets: Mapping[int, Target], staging: Staging
) -> tuple[Intent, int]:
    """One job: staged files and counts, and how many messages came in. No sink changes."""
    places = Places.of(plan)
    for entry in plan.entries:
        assert isinstance(entry.source, Files)
        check(entry.source, entry, streaming=False)
    readers = [Reader(placed(entry), places.routes[entry.route]) for entry in plan.entries]
    try:
        chunks = [(number, chunk) for number, reader in enumerate(readers) for chunk in reader.files.found()]
    except OSError as error:  # a file that has gone meanwhile
        raise BadEndpoint(f"cannot read {error.filename}: {error}") from None
    shares = _shares(chunks, CHUNK_BYTES)
    task = DirectTask(readers, shares, visits(plan), targets, staging, datetime.now(UTC))
    # No DataFrame: to plan a query takes Spark longer than a task takes for a hundred thousand messages.
    numbers = spark.sparkContext.parallelize(range(len(shares)), max(len(shares), 1))
    manifest = reported(numbers.mapPartitions(task).collect, targets, staging)
    tally = Tally()
    for row in manifest:
        if row.place == NOTE:
            tally += json.loads(row.path)
    intent = Intent(staging.key, counts(plan, _observed(plan, places, tally)), staged(manifest, targets, staging))
    return intent, tally.received


def _shares(chunks: list[tuple[int, Chunk]], least: int) -> list[list[tuple[int, Chunk]]]:
    """What each task reads: chunks in their order, small ones together."""
    shares: list[list[tuple[int, Chunk]]] = []
    size = least
    for reader, chunk in chunks:
        if size >= least:
            shares.append([])
            size = 0
        shares[-1].append((reader, chunk))
        size += chunk.end - chunk.start
    return shares


def _observed(plan: Plan, places: Places, tally: Tally) -> dict[str, int]:
    """The numbers under the names that Spark would have counted them by."""
    found = {f"sink {channel}": tally.places[place] for channel, place in places.sinks.items()}
    found |= {f"filtered {stage.title}": tally.places[places.filtered(stage)] for stage in plan.stages()}
    found |= {f"dead {entry.route}.{DECODE}": tally.bad[entry.route] for entry in plan.entries}
    return found | {f"bit {number}": tally.bits[number] for number in places.marks.values()}

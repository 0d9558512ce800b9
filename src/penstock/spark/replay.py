"""Dead letters through an app again: each at the step that failed, or at the start, with the app's own sinks."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.delivery import EXACTLY_ONCE
from penstock.message import DeadLetter
from penstock.plan.build import build
from penstock.plan.plan import Entry, Plan
from penstock.reference.resume import STEP, Entrance, entrances
from penstock.route.app import App
from penstock.spark import frame
from penstock.spark.check import check
from penstock.spark.decode import decode, reads_nothing
from penstock.spark.failure import stopped
from penstock.spark.frame import AT, Places, scope_column
from penstock.spark.lower import enter, order_of
from penstock.spark.read.arrive import stored_schema
from penstock.spark.run import RunResult, summarized
from penstock.spark.session import session
from penstock.spark.ship import ship
from penstock.spark.state.waiting import fields_of, waits, with_room
from penstock.spark.tally import came_to
from penstock.spark.together import computed
from penstock.spark.tries import TRIES
from penstock.spark.types import spark_type
from penstock.spark.write.console import show
from penstock.spark.write.durable import remove_if_empty
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import KEEP, Target, targets
from penstock.spark.write.publish import publish
from penstock.spark.write.ready import made_ready
from penstock.spark.write.staging import Staging
from penstock.summary import Summary

_CARRIER, _NUMBER = "carrier", "number"


def replay(
    app: App,
    letters: Iterable[DeadLetter],
    at: str = STEP,
    source: str | None = None,
    key: str | None = None,
    lasting: str | None = None,
    record: Callable[[Intent], None] | None = None,
    spark: SparkSession | None = None,
) -> RunResult:
    """Dead letters as one batch; what cannot go on is raised before Spark starts.

    All of it is computed before the first sink changes. With `record`, what will be published is written down in
    between, so that a replay that dies later can be finished by `finish`; rows for servers wait in `lasting`.
    """
    plan = build(app, answered=False)  # a body that was stored comes without answers
    check(plan)
    found = entrances(plan, letters, at, source)
    result = RunResult(Summary(app.name), {outlet.channel: [] for outlet in plan.outlets})
    if not found:
        return result
    outlets = _promised(plan)
    outlets = made_ready(outlets)
    spark = spark or session(app.name)
    ship(spark)
    started, scratch = time.monotonic(), tempfile.mkdtemp(prefix="penstock-")
    try:
        resumes_at = {one.stage.title for one in found if one.stage is not None}
        rows = arriving_again(plan, found, spark)
        run = key or f"{app.name}-replay-{uuid.uuid4().hex[:12]}"
        whole = computed(plan, rows, outlets, run, scratch, lasting or scratch, resumes_at)
        try:
            if record is not None:
                whole.seal()
                record(_lasting(whole.intent, outlets.values()))
        except BaseException:
            whole.forget()
            raise
        kept = whole.publish()
        show(kept, outlets)
        seconds = time.monotonic() - started
        result.add(summarized(plan, whole.intent.counts, len(found), seconds, whole.waiting), kept)
    except (PythonException, SparkRuntimeException, Py4JJavaError) as error:
        raise stopped("replay", error, fix="nothing was written: mend the cause and replay again") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return result


def finish(app: App, intent: Intent, lasting: str) -> None:
    """Publish what a replay has computed that died before its end; what is published already stays as it is."""
    outlets = _promised(app.plan)
    outlets = made_ready(outlets)
    publish(intent, outlets, Staging(intent.key, lasting, lasting), again=True)
    for directory in {os.path.dirname(file.path) for file in intent.files}:
        shutil.rmtree(directory, ignore_errors=True)


def sweep(app: App, keys: str, lasting: str) -> None:
    """Remove what replays with such keys have staged. None of them may be under way."""
    for target in targets(app.plan).values():
        parent = Staging("", lasting, lasting).parent(target)
        for name in os.listdir(parent) if os.path.isdir(parent) else ():
            if name.startswith(keys) and os.path.isdir(os.path.join(parent, name)):
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        if target.directory:
            remove_if_empty(parent)


def _promised(plan: Plan) -> dict[int, Target]:
    """Dead letters can be read again, whatever the source: so their sinks promise what they can."""
    return {
        place: target if target.style == KEEP else replace(target, delivery=EXACTLY_ONCE)
        for place, target in targets(plan).items()
    }


def _lasting(intent: Intent, outlets: Iterable[Target]) -> Intent:
    names = {target.name for target in outlets if target.lasts}
    return Intent(intent.key, intent.counts, tuple(file for file in intent.files if file.channel in names))


def arriving_again(plan: Plan, found: Sequence[Entrance], spark: SparkSession) -> DataFrame:
    """Rows at the places where they go on."""
    groups: dict[tuple[str, int, bool], list[tuple[int, Entrance]]] = {}
    for number, one in enumerate(found):
        title = one.reader.route if one.stage is None else one.stage.title
        groups.setdefault((title, one.reader.scope.number, one.stage is None), []).append((number, one))
    data: DataFrame | None = None
    for group in groups.values():
        rows = _entered(plan, group, spark)
        data = rows if data is None else data.unionByName(rows, allowMissingColumns=True)
    assert data is not None
    # The plan begins with the bodies of all sources, whoever comes.
    others = {scope_column(entry.scope): fields_of(plan, entry.scope) for entry in plan.entries}
    absent = {name: F.lit(None).cast(spark_type(kind)) for name, kind in others.items() if name not in data.columns}
    return data.withColumns(absent)


def _entered(plan: Plan, group: Sequence[tuple[int, Entrance]], spark: SparkSession) -> DataFrame:
    """Messages that go on at one place, which all are read in the same way."""
    first, places = group[0][1], Places.of(plan)
    reader, stage = first.reader, first.stage
    stored = spark.createDataFrame(pa.Table.from_pylist([_row(*one) for one in group], schema=_SCHEMA)).coalesce(1)
    label = f"penstock_{uuid.uuid4().hex}"
    decoded = stored if reads_nothing(reader) else decode(stored, reader, F.col(_CARRIER), label)
    rows = enter(decoded, reader, places)
    if stage is not None:
        start = F.col(AT) == places.routes[stage.route]
        rows = came_to(rows, stage, places)
        rows = rows.withColumn(AT, F.when(start, F.lit(places.resume(stage))).otherwise(F.col(AT)))
    if places.ordered:
        path = F.array(F.col(_NUMBER)) if stage is not None else F.array().cast("array<int>")
        rows = rows.withColumn(frame.ORDER, order_of(_source(plan, reader) if stage is None else 0, path))
    tries = F.col(TRIES)
    if waits(plan):
        rows = with_room(rows.withColumnRenamed(TRIES, "_tries"))
        tries = F.col("_tries")
    return rows.withColumn(TRIES, tries).drop("_tries", _CARRIER, _NUMBER)


def _source(plan: Plan, reader: Entry) -> int:
    return next(number for number, entry in enumerate(plan.entries) if entry.route == reader.route)


_SCHEMA = pa.schema(
    [
        *stored_schema(),
        (frame.TIME, pa.timestamp("us", "UTC")),
        (frame.PARENT, pa.string()),
        (frame.INDEX, pa.int64()),
        (frame.COUNT, pa.int64()),
        (TRIES, pa.struct([("route", pa.string()), ("count", pa.int32())])),
        (_CARRIER, pa.binary()),
        (_NUMBER, pa.int32()),
    ]
)


def _row(number: int, one: Entrance) -> dict[str, object]:
    message, part = one.message, one.message.lineage
    route, count = one.tried
    return {
        frame.ID: message.id, frame.BODY: message.raw, frame.TIME: message.time,
        frame.HEADERS: list(message.headers.items()) or None,
        frame.ATTACHMENTS: list(message.attachments.items()) or None,
        frame.TOPIC: message.position.topic, frame.PARTITION: message.position.partition,
        frame.OFFSET: message.position.offset,
        frame.PARENT: part.parent if part else None, frame.INDEX: part.index if part else None,
        frame.COUNT: part.count if part else None,
        TRIES: {"route": route, "count": count + 1}, _CARRIER: one.carrier, _NUMBER: number,
    }  # fmt: skip

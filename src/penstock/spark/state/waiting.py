"""The waiting room: messages that are tried again in a later batch, as files of whole rows with the time they are due.

A file is never changed. A batch takes the rows that became due since the batch before it, so a repeated batch takes
the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from penstock.delivery import EXACTLY_ONCE
from penstock.formats import Json
from penstock.patterns.redelivery import ERRORS, Redelivery
from penstock.plan.plan import Plan, PlannedRoute, Scope, Stage
from penstock.schema import Struct
from penstock.spark import frame
from penstock.spark.decode import decoded_type
from penstock.spark.frame import AT, DEAD, ERROR, HEADERS, ID, RESUME, SCOPE, WAITING, Places, change, scope_column
from penstock.spark.state.table import Snapshot
from penstock.spark.tally import nowhere, sent_back
from penstock.spark.tries import TRIES, TRIES_TYPE, at_try, attempt, with_header
from penstock.spark.types import spark_type
from penstock.spark.write.outlets import LINES, Target

DUE, ADMITTED, FIRST_FORM = "due", "admitted", "first_form"
CHANNEL = "waiting messages"
_ORDER = "struct<source: int, topic: string, partition: int, offset: bigint, path: array<int>>"
_ADDED = {
    DUE: "bigint",
    RESUME: "int",
    TRIES: TRIES_TYPE,
    ADMITTED: "array<struct<step: int, high: bigint, low: bigint, batch: bigint>>",
    FIRST_FORM: f"struct<id: string, headers: map<string, string>, parent: string, index: bigint, count: bigint,"
    f" scope: int, order: {_ORDER}>",
}
_KEPT = {
    ID: "string", HEADERS: "map<string, string>", frame.BODY: "binary", frame.ATTACHMENTS: "map<string, binary>",
    frame.TOPIC: "string", frame.PARTITION: "int", frame.OFFSET: "bigint", frame.TIME: "bigint",
    frame.PARENT: "string", frame.INDEX: "bigint", frame.COUNT: "bigint", SCOPE: "int", frame.ORDER: _ORDER,
    **_ADDED,
}  # fmt: skip


def waits(plan: Plan) -> bool:
    """Whether messages of this plan may wait for a later batch."""
    return any(route.waits for route in plan.routes) or bool(Places.of(plan).undecided)


def with_room(rows: DataFrame) -> DataFrame:
    """Rows with the columns that waiting needs."""
    return rows.withColumns({name: F.lit(None).cast(kind) for name, kind in _ADDED.items()})


def arrived(data: DataFrame, route: PlannedRoute, places: Places) -> DataFrame:
    """At the start of a route, messages as they came are noted, if that is what will be tried again."""
    if not route.restarts:
        return data
    form = F.struct(ID, HEADERS, frame.PARENT, frame.INDEX, frame.COUNT, SCOPE, frame.ORDER)
    return change(data, F.col(AT) == places.routes[route.name], {FIRST_FORM: form})


def resumed(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    """Messages that waited for this step are here again."""
    back = F.col(AT) == places.resume(stage)
    return change(data, back, {AT: F.lit(places.routes[stage.route])})


def parked(data: DataFrame, route: PlannedRoute, places: Places, snapshot: Snapshot) -> DataFrame:
    """At the end of a route, its dead letters that may be tried again wait instead.

    Those of a step that tries at once have no tries left.
    """
    policy = route.redelivery
    if policy is None or not route.waits:
        return data
    error, tries = F.col(ERROR), attempt(route.name)
    covered = error.getField("error").isin(*(policy.errors or ERRORS)) & (tries <= policy.attempts)
    again = (F.col(AT) == DEAD) & (error.getField("route") == route.name) & covered
    steps = F.create_map(*(F.lit(part) for stage in route.stages for part in (stage.node.name, places.resume(stage))))
    columns: dict[str, Column] = {
        DUE: F.lit(snapshot.moment.now) + _wait(policy, tries),
        RESUME: F.element_at(steps, error.getField("step")),
        **at_try(route.name, tries + 1, F.col(HEADERS)),
        ERROR: F.lit(None).cast(frame.ERROR_TYPE),
        AT: F.lit(WAITING),
    }
    if policy.restarts:
        # A dead letter that was replayed at a step came there, not to the start: it has no first form.
        form, came = F.col(FIRST_FORM), F.col(FIRST_FORM).isNotNull()
        restored = {
            name: form.getField(name) for name in (ID, frame.PARENT, frame.INDEX, frame.COUNT, SCOPE, frame.ORDER)
        }
        restored |= {
            HEADERS: with_header(form.getField(HEADERS), tries),
            RESUME: F.lit(places.resume(route.stages[0])),
        }
        columns |= {
            name: F.when(came, column).otherwise(columns.get(name, F.col(name))) for name, column in restored.items()
        }
    chosen = data.withColumn("_again", again)
    if policy.restarts:
        chosen = sent_back(chosen, F.col("_again") & F.col(FIRST_FORM).isNotNull(), route, places)
    return change(chosen, F.col("_again"), columns).drop("_again")


def _wait(policy: Redelivery, tries: Column) -> Column:
    """Microseconds until the next try, at least one: the same as `Redelivery.wait` says."""
    full = F.least(F.lit(policy.delay) * F.pow(F.lit(policy.backoff), tries - 1), F.lit(policy.cap))
    digest = F.sha2(F.concat(F.col(ID), F.lit("/"), tries.cast("string")).cast("binary"), 256)
    share = F.conv(F.substring(digest, 1, 12), 16, 10).cast("double") / F.lit(float(2**48))
    seconds = full * (F.lit(1.0) - F.lit(policy.jitter) * share)
    return F.greatest(F.round(seconds * 1_000_000).cast("bigint"), F.lit(1).cast("bigint"))


def envelope(data: DataFrame, plan: Plan) -> Column:
    """A waiting message with everything that is known about it, as one JSON text.

    It names its step: the number may be another one when the app has changed meanwhile.
    """
    bodies = [scope_column(scope) for scope in scopes(plan) if scope_column(scope) in data.columns]
    written = {
        frame.TIME: F.unix_micros(frame.TIME),
        RESUME: _looked_up({number: title for title, number in Places.of(plan).resumes.items()}, F.col(RESUME)),
    }
    columns = [written[name].alias(name) if name in written else F.col(name) for name in _KEPT]
    return F.to_json(F.struct(*columns, *bodies)).cast("binary")


def released(spark_session: SparkSession, plan: Plan, snapshot: Snapshot) -> DataFrame | None:
    """The messages that are due by now and were not in the batch before, at the step where they go on."""
    if not snapshot.waiting:
        return None
    kinds = {**_KEPT, RESUME: "string"}
    fields = [spark.StructField(name, spark.DataType.fromDDL(kind)) for name, kind in kinds.items()]
    fields += [spark.StructField(scope_column(scope), spark_type(fields_of(plan, scope))) for scope in scopes(plan)]
    text = spark_session.read.text(list(snapshot.waiting))
    rows = text.select(F.from_json("value", spark.StructType(fields)).alias("row")).select("row.*")
    due = rows.filter((F.col(DUE) > snapshot.since) & (F.col(DUE) <= snapshot.moment.now))
    nothing = {name: F.lit(None).cast(_ADDED[name]) for name in (DUE, RESUME)}
    again = {
        AT: _looked_up(Places.of(plan).resumes, F.col(RESUME)),
        ERROR: F.lit(None).cast(frame.ERROR_TYPE),
        **nowhere(Places.of(plan)),
        frame.TIME: F.timestamp_micros(frame.TIME),
    }
    return due.withColumns(again).withColumns(nothing)


def fields_of(plan: Plan, scope: Scope) -> Struct:
    """The fields of a scope as rows have them: a source also leaves what its paths have found."""
    entry = next((entry for entry in plan.entries if entry.scope.number == scope.number), None)
    paths = decoded_type(entry).fields[len(scope.wanted.fields) :] if entry is not None else ()
    return Struct((*scope.wanted.fields, *paths))


def _looked_up(table: Mapping[Any, Any], key: Column) -> Column:
    return F.element_at(F.create_map(*(F.lit(part) for pair in table.items() for part in pair)), key)


def scopes(plan: Plan) -> list[Scope]:
    """Every body that a waiting message may have."""
    found = [scope for stage in plan.stages() for scope in (stage.scope, stage.after)]
    found += [inflow.scope for route in plan.routes for inflow in route.inflows]
    return sorted({scope.number: scope for scope in found}.values(), key=lambda scope: scope.number)


def room(directory: str) -> Target:
    """The waiting room as a sink: written and published like any other, where only we look."""
    return Target(WAITING, CHANNEL, LINES, os.path.join(directory, "waiting"), Json("id STRING"), delivery=EXACTLY_ONCE)

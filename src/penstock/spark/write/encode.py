"""The last columns: the place, the body as the sink wants it, and what is known about the message."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.plan.demand import converts
from penstock.plan.plan import Plan, Scope
from penstock.spark import frame
from penstock.spark.frame import AT, BODY, DEAD, SCOPE, WAITING, Places, never_null, scope_column
from penstock.spark.state.buried import body_text
from penstock.spark.state.waiting import DUE, envelope
from penstock.spark.tally import PLACE, place_column
from penstock.spark.tries import TRIES, attempt
from penstock.spark.write.outlets import Target

META, WRITTEN, ATTEMPT, FIELDS = "meta", "written", "attempt", "fields"
_META_COLUMNS = (
    frame.ID, frame.HEADERS, frame.ATTACHMENTS, frame.TOPIC, frame.PARTITION, frame.OFFSET, frame.TIME,
    frame.PARENT, frame.INDEX, frame.COUNT, frame.ERROR,
)  # fmt: skip


def encoded(data: DataFrame, plan: Plan, targets: Mapping[int, Target], timed: bool = False) -> DataFrame:
    """Rows of (place, body, written, meta): `written` bodies are JSON that we made, the others are as they came.

    `meta` is empty where nobody wants it, and null if nobody does at all. The rest is for counting;
    `timed` asks for the time, in seconds since 1970.
    """
    body, written = _body(plan)
    counted: list[Column | str] = [place_column(data, plan).alias(PLACE), *Places.of(plan).visited]
    if timed:
        counted.append(F.col(frame.TIME).cast("double").alias(frame.TIME))
    if DUE in data.columns:
        body = F.when(F.col(AT) == WAITING, envelope(data, plan)).otherwise(body)
        counted.append(DUE)
    return data.select(AT, body.alias(BODY), written.alias(WRITTEN), _meta(data, plan, targets).alias(META), *counted)


def _meta(data: DataFrame, plan: Plan, targets: Mapping[int, Target]) -> Column:
    described = [place for place, target in targets.items() if target.wants_meta]
    nothing = F.lit(None).cast("string")
    if not described:
        return nothing
    tries = attempt(F.col(frame.ERROR).getField("route")) if TRIES in data.columns else F.lit(1)
    fields = F.when(F.col(AT) == DEAD, body_text(data, plan)) if DEAD in targets else nothing
    known = {**{name: F.col(name) for name in _META_COLUMNS}, ATTEMPT: tries, FIELDS: fields}
    kinds, wanted = {field.name: field.dataType for field in data.schema}, F.col(AT).isin(*described)
    return F.struct(
        *(never_null(F.when(wanted, column), kinds.get(name)).alias(name) for name, column in known.items())
    )


def _body(plan: Plan) -> tuple[Column, Column]:
    """A body that nothing rewrote is sent as it came; the others are written as JSON, unless the decoder did it."""
    places, ready = Places.of(plan), {stage.after.number for stage in plan.stages() if stage.written}
    written: dict[int, tuple[Scope, list[int]]] = {}
    for outlet in plan.outlets:
        for inflow in outlet.inflows:
            scope = inflow.scope
            if converts(outlet.sink, scope):
                written.setdefault(scope.number, (scope, []))[1].append(places.sinks[outlet.channel])
    body, made = F.col(BODY), F.lit(False)
    for number, (scope, sinks) in sorted(written.items()):
        applies = (F.col(SCOPE) == number) & (F.col(AT).isin(*sinks) if scope.raw else F.col(AT) >= 0)
        if number not in ready:
            body = F.when(applies, F.to_json(F.col(scope_column(scope))).cast("binary")).otherwise(body)
        made = made | applies
    return body, made

"""Steps that make several messages of one: multicast, wire tap, recipient list, splitter."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.patterns.multicast import Multicast
from penstock.patterns.recipients import Recipients
from penstock.patterns.split import VALUE, Split, SplitFields
from penstock.patterns.tap import Tap
from penstock.plan.plan import Stage
from penstock.reference.steps import UNKNOWN_RECIPIENT
from penstock.schema import STRING, Struct
from penstock.spark.content import fitted, nothing, shaped
from penstock.spark.context import context_of
from penstock.spark.expressions import lower
from penstock.spark.family import with_members, with_roots
from penstock.spark.frame import (
    AT,
    BODY,
    COUNT,
    DEAD,
    ERROR,
    ID,
    INDEX,
    ORDER,
    PARENT,
    PARTS,
    Places,
    change,
    error,
    here,
    scope_column,
)
from penstock.spark.tally import made_at

_PARTS, PART, _NUMBER, _TOTAL = "_parts", "_part", "_number", "_total"


def multicast(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    assert isinstance(stage.node, Multicast)
    targets = [F.lit(places.channel(target)) for target in stage.node.targets]
    return _copied(data, stage, places, F.array(*targets), {AT: F.col(PART)})


def tap(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    assert isinstance(stage.node, Tap)
    targets = F.array(F.lit(places.channel(stage.node.target)), F.lit(places.routes[stage.route]))
    return _copied(data, stage, places, targets, {AT: F.col(PART)})


def to_recipients(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, Recipients)
    value = lower(node.recipients, context_of(stage))
    kind = context_of(stage).kind(node.recipients)
    listed = F.split(value, f"\\Q{node.separator}\\E", -1) if kind == STRING else value
    names = F.array_distinct(
        F.filter(F.transform(listed, lambda name: F.trim(name)), lambda name: name.isNotNull() & (name != ""))
    )
    known = F.create_map(*(F.lit(part) for name in node.known for part in (name, places.channel(name))))
    place = F.coalesce(F.try_element_at(known, F.col(PART)), F.lit(DEAD))
    shown = F.concat(F.lit("no channel is known as '"), F.col(PART), F.lit("'"))
    reason = F.coalesce(shown, F.lit("the message names no recipient"))
    died = F.when(place == DEAD, error(stage, UNKNOWN_RECIPIENT, reason)).otherwise(F.col(ERROR))
    return _copied(data, stage, places, names, {ERROR: died, AT: place})


def split(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, Split)
    if stage.written:
        return parts(data, stage, places, F.col(PARTS), {BODY: F.col(PART)}).drop(PARTS)
    context = context_of(stage)
    elements, wanted = lower(node.collection, context), stage.after.wanted
    part = F.col(PART)
    element = getattr(context.kind(node.collection), "element", None)
    if node.into is None and isinstance(element, Struct):
        body = F.coalesce(fitted(part, element, wanted), nothing(wanted))
    elif node.into is None:
        body = F.struct(part.alias(VALUE))
    else:
        source = context.body
        known = stage.scope.wanted
        values = {
            name: shaped(part, element, kind)
            if name == node.into
            else shaped(source.getField(name), known.get(name), kind)
            for name, kind in wanted.fields
        }
        body = F.struct(*(value.alias(name) for name, value in values.items()))
    return parts(data, stage, places, elements, {scope_column(stage.after): body})


def split_fields(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, SplitFields)
    if stage.written:
        return parts(data, stage, places, F.col(PARTS), {BODY: F.col(PART)}).drop(PARTS)
    source, schema = context_of(stage).body, stage.scope.schema
    iterable = node.iterable(schema)
    names = F.array_compact(F.array(*(F.when(source.getField(name).isNotNull(), F.lit(name)) for name in iterable)))
    body = F.struct(
        *(
            (F.when(F.col(PART) == name, source.getField(name)) if name in iterable else source.getField(name)).alias(
                name
            )
            for name, _ in stage.after.wanted.fields
        )
    )
    return parts(data, stage, places, names, {scope_column(stage.after): body})


def parts(
    data: DataFrame, stage: Stage, places: Places, elements: Column, body: Mapping[str, Column], fewest: int = 1
) -> DataFrame:
    """One message per element; with fewer than `fewest` it stays itself; without any it counts as filtered."""
    exploded = _exploded(data, stage, places, elements)
    present, empty = here(stage, places), F.col(_TOTAL) == 0
    part = F.col(_TOTAL) >= fewest
    columns: Mapping[str, Column] = {
        **body,
        PARENT: F.when(part, F.col(ID)).otherwise(F.col(PARENT)),
        ID: F.when(part, F.concat(F.col(ID), F.lit("."), F.col(_NUMBER).cast("string"))).otherwise(F.col(ID)),
        INDEX: F.when(part, F.col(_NUMBER).cast("bigint")).otherwise(F.col(INDEX)),
        COUNT: F.when(part, F.col(_TOTAL).cast("bigint")).otherwise(F.col(COUNT)),
    }
    changed = change(exploded, present, columns)
    moved = change(changed, present & empty, {AT: F.lit(places.filtered(stage))})
    return _done(moved, stage, places)


def _copied(data: DataFrame, stage: Stage, places: Places, targets: Column, columns: Mapping[str, Column]) -> DataFrame:
    exploded = _exploded(data, stage, places, targets)
    return _done(change(exploded, here(stage, places), columns), stage, places)


def _done(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    return with_members(data, stage, places, F.col(_NUMBER), F.col(_TOTAL)).drop(PART, _NUMBER, _TOTAL)


def _exploded(data: DataFrame, stage: Stage, places: Places, elements: Column) -> DataFrame:
    """Every message here once per element, or once if it has none; the others once, as they are."""
    present = here(stage, places)
    listed = with_roots(data, stage, places).withColumn(_PARTS, F.when(present, elements))
    counted = listed.withColumn(_TOTAL, F.when(present, F.coalesce(F.array_size(F.col(_PARTS)), F.lit(0))))
    exploded = counted.select("*", F.posexplode_outer(_PARTS).alias(_NUMBER, PART)).drop(_PARTS)
    if ORDER in exploded.columns:
        longer = F.concat(F.col(ORDER).getField("path"), F.array(F.coalesce(F.col(_NUMBER), F.lit(0))))
        exploded = change(exploded, present, {ORDER: F.col(ORDER).withField("path", longer)})
    return change(exploded, F.coalesce(F.col(_NUMBER), F.lit(0)) > 0, made_at(stage, places))

"""Steps that make a new body: translator, content filter, enricher."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.patterns.content_filter import ContentFilter
from penstock.patterns.enrich import Enrich, EnrichFromTable
from penstock.patterns.node import DEAD as DEAD_POLICY
from penstock.patterns.translate import Mappings, Translate
from penstock.plan.plan import Stage
from penstock.reference.steps import NOT_IN_TABLE
from penstock.schema import Struct, Type
from penstock.spark.context import context_of
from penstock.spark.expressions import Context, lower
from penstock.spark.frame import AT, DEAD, ERROR, Places, change, error, here, scope_column
from penstock.spark.types import spark_type


def translate(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    assert isinstance(stage.node, Translate)
    if stage.written:
        return data
    body = built(stage.after.wanted, stage.node.mappings, context_of(stage), Struct(()))
    return change(data, here(stage, places), {scope_column(stage.after): body})


def enrich(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    assert isinstance(stage.node, Enrich)
    body = built(stage.after.wanted, stage.node.mappings, context_of(stage), stage.scope.wanted)
    return change(data, here(stage, places), {scope_column(stage.after): body})


def narrow(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    assert isinstance(stage.node, ContentFilter)
    body = fitted(F.col(scope_column(stage.scope)), stage.scope.wanted, stage.after.wanted)
    return change(data, here(stage, places), {scope_column(stage.after): F.coalesce(body, nothing(stage.after.wanted))})


def enrich_from_table(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, EnrichFromTable)
    wanted = node.looked_up()
    table = data.sparkSession.createDataFrame(
        node.table.table.select(list(dict.fromkeys((node.table.key, *wanted.names))))
    )
    row = F.struct(*(F.col(f"`{name}`").cast(spark_type(kind)).alias(name) for name, kind in wanted.fields))
    table = table.select(F.col(f"`{node.table.key}`").alias("_key"), row.alias("_row"))
    if node.table.is_small:
        table = F.broadcast(table)
    key = F.when(here(stage, places), lower(node.on, context_of(stage)))
    joined = data.withColumn("_on", key).join(table, F.col("_on") == F.col("_key"), "left")
    found = F.col("_row")
    source = F.col(scope_column(stage.scope))
    fields = [
        _added(node, found, name, kind)
        if name in node.added().names
        else shaped(source.getField(name), stage.scope.wanted.get(name), kind)
        for name, kind in stage.after.wanted.fields
    ]
    body = F.struct(*(column.alias(name) for column, name in zip(fields, stage.after.wanted.names, strict=True)))
    result = change(joined, here(stage, places), {scope_column(stage.after): body})
    if node.missing == DEAD_POLICY:
        died = here(stage, places) & F.col("_key").isNull()
        shown = F.coalesce(F.col("_on").cast("string"), F.lit("nothing"))
        reason = F.concat(F.lit(f"{node.table} has no row for "), shown)
        dead = error(stage, NOT_IN_TABLE, reason)
        result = result.withColumns(
            {ERROR: F.when(died, dead).otherwise(F.col(ERROR)), AT: F.when(died, F.lit(DEAD)).otherwise(F.col(AT))}
        )
    return result.drop("_on", "_key", "_row")


def _added(node: EnrichFromTable, found: Column, name: str, kind: Type) -> Column:
    if not node.into:
        return found.getField(name)
    assert isinstance(kind, Struct)
    return F.when(found.isNotNull(), F.struct(*(found.getField(inner).alias(inner) for inner in kind.names)))


def built(wanted: Struct, mappings: Mappings, context: Context, kept: Struct) -> Column:
    """A body from mappings, with the fields that are kept from the incoming one."""
    return F.struct(*(_field(name, kind, mappings, context, kept).alias(name) for name, kind in wanted.fields))


def _field(name: str, kind: Type, mappings: Mappings, context: Context, kept: Struct) -> Column:
    below = tuple((target[1:], value) for target, value in mappings if target[0] == name)
    if not below:
        return shaped(context.body.getField(name), kept.get(name), kind)
    if below[0][0] == ():
        return shaped(lower(below[0][1], context), context.kind(below[0][1]), kind)
    assert isinstance(kind, Struct)
    return built(kind, below, context, Struct(()))


def fitted(column: Column, source: Struct, wanted: Struct) -> Column:
    """A struct with the wanted fields; those that the source does not have are null, and null stays null."""
    fields = []
    for name, kind in wanted.fields:
        known = source.get(name)
        value = F.lit(None).cast(spark_type(kind)) if known is None else shaped(column.getField(name), known, kind)
        fields.append(value.alias(name))
    return F.when(column.isNotNull(), F.struct(*fields))


def shaped(column: Column, source: Type | None, wanted: Type) -> Column:
    """A value as somebody wants it: a struct keeps only the fields that are read, anything else takes its type."""
    if isinstance(source, Struct) and isinstance(wanted, Struct):
        return fitted(column, source, wanted)
    return column.cast(spark_type(wanted))


def nothing(wanted: Struct) -> Column:
    """A body without any field."""
    return F.struct(*(F.lit(None).cast(spark_type(kind)).alias(name) for name, kind in wanted.fields))

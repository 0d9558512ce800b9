"""Steps that remember, in a plan: rows go to the task of their key's bucket, in order, and come back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from penstock.expr.nodes import Expr
from penstock.patterns.key import INVALID_KEY
from penstock.patterns.node import DEAD as DEAD_POLICY
from penstock.plan.plan import Scope, Stage
from penstock.schema import STRING
from penstock.spark.context import context_of
from penstock.spark.expressions import lower
from penstock.spark.frame import AT, DEAD, ERROR, ID, ORDER, Places, error, here, scope_column
from penstock.spark.state.crossing import arrow_schema, incoming, outgoing
from penstock.spark.state.keys import HIGH, LOW
from penstock.spark.state.rows import KEY, Fates
from penstock.spark.state.table import Snapshot
from penstock.spark.state.task import Algorithm, StateTask

_INPUTS = (HIGH, LOW, KEY)


def fates_of(stage: Stage, places: Places) -> Fates:
    return Fates(stage.route, stage.node.name, places.routes[stage.route], places.filtered(stage))


def key_text(stage: Stage, parts: Sequence[Expr]) -> Column:
    """The key as text; null when a part of it is."""
    context = context_of(stage)
    values = [lower(part, context) for part in parts]
    if len(values) == 1:
        return values[0].cast("string")
    complete = values[0].isNotNull()
    for value in values[1:]:
        complete = complete & value.isNotNull()
    texts = [
        F.regexp_extract(F.to_json(F.array(value)), r"(?s)^\[(.*)\]$", 1)
        if context.kind(part) == STRING
        else value.cast("string")
        for part, value in zip(parts, values, strict=True)
    ]
    return F.when(complete, F.concat(F.lit("["), F.concat_ws(",", *texts), F.lit("]")))


def with_key(
    data: DataFrame, stage: Stage, places: Places, key: Column, identity: Column, invalid: str, reason: Column | str
) -> DataFrame:
    """Key columns for the messages that are here; those without a key meet their declared fate."""
    present = here(stage, places)
    named = data.withColumn(KEY, F.when(present, key))
    lost = present & F.col(KEY).isNull()
    place = DEAD if invalid == DEAD_POLICY else places.filtered(stage)
    columns = {AT: F.when(lost, F.lit(place)).otherwise(F.col(AT))}
    if invalid == DEAD_POLICY:
        columns[ERROR] = F.when(lost, error(stage, INVALID_KEY, reason)).otherwise(F.col(ERROR))
    moved = named.withColumns(columns)
    digest = F.sha2(identity.cast("binary"), 256)
    return moved.withColumns(
        {
            HIGH: F.when(present, F.conv(F.substring(digest, 1, 16), 16, -10).cast("bigint")),
            LOW: F.when(present, F.conv(F.substring(digest, 17, 16), 16, -10).cast("bigint")),
        }
    )


def remembered(
    data: DataFrame,
    stage: Stage,
    places: Places,
    snapshot: Snapshot,
    algorithm: Algorithm,
    scopes: Iterable[Scope],
    added: Sequence[spark.StructField] = (),
    inputs: Sequence[str] = (),
) -> DataFrame:
    """The rows after the step: `inputs` are columns that only the task reads, `added` those that it makes."""
    if snapshot.on_payload is not None:
        snapshot.on_payload(stage.title, algorithm.payload)
    known = {scope_column(scope): scope for scope in scopes}
    spread = F.when(here(stage, places), F.col(HIGH)).otherwise(F.hash(ID).cast("bigint"))
    bucket = F.pmod(spread, F.lit(snapshot.buckets)).cast("int")
    arriving = outgoing(data, {name: scope for name, scope in known.items() if name in data.columns})
    placed = arriving.repartitionById(snapshot.buckets, bucket).sortWithinPartitions(HIGH, LOW, ORDER)
    kept = [field for field in placed.schema.toNullable() if field.name not in (*_INPUTS, *inputs)]
    leaving = spark.StructType([*kept, *(field for field in added if field.name not in [one.name for one in kept])])
    task = StateTask(
        stage.title,
        places.routes[stage.route],
        algorithm,
        snapshot.runs(stage.title),
        snapshot.directory,
        snapshot.moment,
        arrow_schema(placed.schema),
        arrow_schema(leaving),
        snapshot.timed,
    )
    result = placed.mapInArrow(task, leaving)
    return incoming(result, {name: scope for name, scope in known.items() if name in leaving.names})


def field_of(data: DataFrame, names: Sequence[str]) -> pa.Schema:
    """The Arrow fields of some columns."""
    schema = spark.StructType([field for field in data.schema if field.name in names])
    return arrow_schema(schema)

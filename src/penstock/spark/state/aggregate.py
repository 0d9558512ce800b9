"""The aggregator in a plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from penstock.formats.arrow import arrow_type
from penstock.patterns.aggregate import COMPLETED_BY as COMPLETED_HEADER
from penstock.patterns.aggregate import CORRELATION, REOPEN, Aggregate
from penstock.patterns.aggregate import GROUP_SIZE as SIZE_HEADER
from penstock.patterns.key import NO_PARENT, NO_VALUE
from penstock.patterns.strategy import Collect, Custom, Fold, Latest, Union
from penstock.plan.plan import Scope, Stage
from penstock.schema import DOUBLE, INTEGER, Type
from penstock.spark import frame
from penstock.spark.context import context_of
from penstock.spark.decode import as_text
from penstock.spark.expressions import lower, lower_predicate
from penstock.spark.frame import Places, change, here, scope_column
from penstock.spark.state.aggregating import Aggregating
from penstock.spark.state.assembly import Assembly, Calling, Collecting, Folding, Partial, Result, Uniting
from penstock.spark.state.crossing import arrow_schema, outgoing, scope_field
from penstock.spark.state.reduce import FIRST, LAST, MAX, MIN, SUM, rough
from penstock.spark.state.remember import fates_of, field_of, key_text, remembered, with_key
from penstock.spark.state.rows import COMPLETED_BY, COMPLETES, GROUP_SIZE, KEY
from penstock.spark.state.table import Snapshot

_CARRIED = (
    frame.ID, frame.HEADERS, frame.ATTACHMENTS, frame.TOPIC, frame.PARTITION, frame.OFFSET, frame.TIME,
    frame.PARENT, frame.INDEX, frame.COUNT, frame.SCOPE, frame.ORDER,
)  # fmt: skip
_ADDED = (
    spark.StructField(KEY, spark.StringType()),
    spark.StructField(COMPLETED_BY, spark.StringType()),
    spark.StructField(GROUP_SIZE, spark.LongType()),
)


def aggregate(data: DataFrame, stage: Stage, places: Places, snapshot: Snapshot, scopes: Iterable[Scope]) -> DataFrame:
    node = stage.node
    assert isinstance(node, Aggregate)
    key = key_text(stage, node.by) if node.by else F.col(frame.PARENT)
    reason = NO_VALUE if node.by else NO_PARENT
    keyed = with_key(data, stage, places, key, F.lit("") if node.new_group else F.col(KEY), node.invalid, reason)
    inputs: list[str] = []
    if node.when is not None:
        inputs.append(COMPLETES)
        keyed = keyed.withColumn(COMPLETES, here(stage, places) & lower_predicate(node.when, context_of(stage)))
    if isinstance(node.strategy, Fold):
        context = context_of(stage)
        for number, (_, _, value) in enumerate(node.strategy.folds):
            if value is not None:
                inputs.append(f"fold_{number}")
                keyed = keyed.withColumn(f"fold_{number}", F.when(here(stage, places), lower(value, context)))
    needs_body = isinstance(node.strategy, Custom) or node.closed != REOPEN
    carried = field_of(keyed, [*_CARRIED, *([frame.BODY] if needs_body else [])])
    algorithm = Aggregating(
        node.size, node.timeout, node.interval, node.when is not None, node.batch_end, node.new_group,
        node.on_timeout, node.on_stop or snapshot.on_stop, node.closed, node.closed_for,
        _assembly(keyed, node, stage, places), fates_of(stage, places), carried,
    )  # fmt: skip
    added = [*_ADDED, scope_field(stage.after)]
    every = {scope.number: scope for scope in (*scopes, stage.scope, stage.after)}
    result = remembered(keyed, stage, places, snapshot, algorithm, every.values(), added, inputs)
    return _named(result, stage, places, bool(node.by)).drop(KEY, COMPLETED_BY, GROUP_SIZE)


def _named(data: DataFrame, stage: Stage, places: Places, by_key: bool) -> DataFrame:
    """Identity, lineage and headers of what was put together."""
    made = F.col(COMPLETED_BY).isNotNull()
    others = (F.col(GROUP_SIZE) - 1).cast("string")
    identity = F.concat(F.col(frame.ID), F.lit("+"), others) if by_key else F.col(frame.PARENT)
    added = F.create_map(
        F.lit(CORRELATION), F.col(KEY),
        F.lit(COMPLETED_HEADER), F.col(COMPLETED_BY),
        F.lit(SIZE_HEADER), F.col(GROUP_SIZE).cast("string"),
    )  # fmt: skip
    names = [CORRELATION, COMPLETED_HEADER, SIZE_HEADER]
    before = F.coalesce(F.col(frame.HEADERS), F.create_map().cast("map<string, string>"))
    kept = F.map_filter(before, lambda name, _: ~name.isin(*names))
    nothing: dict[str, Column] = {
        frame.PARENT: F.lit(None).cast("string"),
        frame.INDEX: F.lit(None).cast("bigint"),
        frame.COUNT: F.lit(None).cast("bigint"),
    }
    body = F.to_json(F.col(scope_column(stage.after))).cast("binary")
    columns = {frame.ID: identity, frame.HEADERS: F.map_concat(kept, added), frame.BODY: body, **nothing}
    return change(data, made, columns)


def _assembly(data: DataFrame, node: Aggregate, stage: Stage, places: Places) -> Assembly:
    strategy = node.strategy
    after = arrow_schema(spark.StructType([scope_field(stage.after)])).field(0)
    bare = outgoing(data.select(scope_column(stage.scope)), {scope_column(stage.scope): stage.scope})
    value = arrow_schema(bare.schema).field(0)
    match strategy:
        case Collect():
            return Collecting(value, after, strategy.into, strategy.of, tuple(strategy.head), tuple(strategy.tail))
        case Union():
            return Uniting(value, after, False)
        case Latest():
            return Uniting(value, after, True)
        case Custom():
            returns = arrow_schema(spark.StructType([scope_field(_whole(stage.after))])).field(0).type
            return Calling(value, after, strategy.function, pa.schema(list(returns)), fates_of(stage, places))
    assert isinstance(strategy, Fold)
    partials, results = _folds(strategy, dict(stage.after.schema.fields))
    return Folding(after, partials, results, fates_of(stage, places))


def _folds(strategy: Fold, kinds: dict[str, Type]) -> tuple[tuple[Partial, ...], tuple[Result, ...]]:
    """All of them, wanted or not: a sum that does not fit is an error even if nobody reads it."""
    partials: list[Partial] = []
    results: list[Result] = []
    operations = {"sum": SUM, "min": MIN, "max": MAX, "first": FIRST, "last": LAST}
    for number, (name, function, value) in enumerate(strategy.folds):
        source = f"fold_{number}"
        if value is None:
            results.append(Result(name, ()))
        elif function == "count":
            partials.append(Partial(f"{source}_count", SUM, source, pa.int64(), present=True))
            results.append(Result(name, (f"{source}_count",)))
        elif function == "mean":
            partials.append(Partial(f"{source}_sum", SUM, source, arrow_type(DOUBLE)))
            partials.append(Partial(f"{source}_count", SUM, source, pa.int64(), present=True))
            results.append(Result(name, (f"{source}_sum", f"{source}_count")))
        else:
            partials.append(Partial(f"{source}_{function}", operations[function], source,
                                    arrow_type(as_text(kinds[name]))))  # fmt: skip
            results.append(Result(name, (f"{source}_{function}",)))
            if function == "sum" and kinds[name] == INTEGER:
                partials.append(Partial(rough(f"{source}_{function}"), SUM, source, arrow_type(DOUBLE)))
    return tuple(partials), tuple(results)


def _whole(scope: Scope) -> Scope:
    return replace(scope, wanted=scope.schema)

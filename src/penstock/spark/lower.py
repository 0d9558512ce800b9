"""A plan as one DataFrame: every message a row, every step a column expression on the rows that are there.

Nothing is computed twice: branches are values of the `at` column, not separate DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.patterns.balance import Balance
from penstock.patterns.choice import Choice
from penstock.patterns.content_filter import ContentFilter
from penstock.patterns.enrich import Enrich, EnrichFromTable
from penstock.patterns.filter import Filter
from penstock.patterns.join import Join
from penstock.patterns.multicast import Multicast
from penstock.patterns.node import Node
from penstock.patterns.recipients import Recipients
from penstock.patterns.script import Script
from penstock.patterns.split import Split, SplitFields
from penstock.patterns.tap import Tap
from penstock.patterns.to import To
from penstock.patterns.translate import Translate
from penstock.plan.plan import Entry, Plan, PlannedRoute, Stage
from penstock.reference.run import DECODE
from penstock.spark import content, copying, routing, script
from penstock.spark.decode import body_fields, decoded_type
from penstock.spark.frame import (
    AT,
    BAD_ERROR,
    BAD_REASON,
    COPIES,
    DEAD,
    ERROR,
    ERROR_TYPE,
    SCOPE,
    Places,
    change,
    field_column,
    here,
    scope_column,
)
from penstock.spark.python_functions import with_functions
from penstock.spark.types import spark_type

Step = Callable[[DataFrame, Stage, Places], DataFrame]
_STEPS: dict[type[Node], Step] = {
    Filter: routing.filter_messages,
    Choice: routing.choose,
    Balance: routing.balance,
    To: routing.send,
    Multicast: copying.multicast,
    Tap: copying.tap,
    Recipients: copying.to_recipients,
    Split: copying.split,
    SplitFields: copying.split_fields,
    Translate: content.translate,
    ContentFilter: content.narrow,
    Enrich: content.enrich,
    EnrichFromTable: content.enrich_from_table,
    Script: script.run,
}


def lower(plan: Plan, arriving: Mapping[str, DataFrame]) -> DataFrame:
    """All messages at their last place. `arriving` has the messages of every source, by the name of its route."""
    places = Places.of(plan)
    data: DataFrame | None = None
    for route in plan.routes:
        entry = next((entry for entry in plan.entries if entry.route == route.name), None)
        if entry is not None:
            entered = enter(arriving[route.name], entry, places)
            data = entered if data is None else data.unionByName(entered, allowMissingColumns=True)
        assert data is not None
        data = _merge(data, route, places)
        for stage in route.stages:
            data = _step(data, stage, places)
    assert data is not None
    return data


def enter(data: DataFrame, entry: Entry, places: Places) -> DataFrame:
    """Messages from a source at the start of their route; those that could not be decoded are dead."""
    start, bad = F.lit(places.routes[entry.route]), F.col(BAD_ERROR)
    no_error = F.lit(None).cast(ERROR_TYPE)
    columns = {SCOPE: F.lit(entry.scope.number), COPIES: F.lit(0), scope_column(entry.scope): body_fields(entry)}
    if BAD_ERROR in data.columns:
        failed = F.struct(
            F.lit(entry.route).alias("route"),
            F.lit(DECODE).alias("step"),
            bad.alias("error"),
            F.col(BAD_REASON).alias("reason"),
        )
        columns |= {
            AT: F.when(bad.isNull(), start).otherwise(F.lit(DEAD)),
            ERROR: F.when(bad.isNotNull(), failed).otherwise(no_error),
        }
    else:
        columns |= {AT: start, ERROR: no_error}
    fields = (field_column(index) for index in range(len(decoded_type(entry).fields)))
    return data.withColumns(columns).drop(*fields, BAD_ERROR, BAD_REASON)


def _step(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    if isinstance(stage.node, Join):
        return data
    data = with_functions(data, stage, places)
    step = _STEPS[type(stage.node)]
    result = step(data, stage, places)
    if stage.node.rewrites:
        result = change(result, here(stage, places), {SCOPE: F.lit(stage.after.number)})
    return result


def _merge(data: DataFrame, route: PlannedRoute, places: Places) -> DataFrame:
    """Bodies of different schemas that meet at a route become one schema."""
    if not route.merges:
        return data
    merged: Column | None = None
    for scope in dict.fromkeys(inflow.scope for inflow in route.inflows):
        fields = content.fitted(F.col(scope_column(scope)), scope.wanted, route.scope.wanted)
        arrived = F.col(SCOPE) == scope.number
        merged = F.when(arrived, fields) if merged is None else merged.when(arrived, fields)
    assert merged is not None
    present = F.col(AT) == places.routes[route.name]
    columns = {scope_column(route.scope): merged.cast(spark_type(route.scope.wanted)), SCOPE: F.lit(route.scope.number)}
    return change(data, present, columns)

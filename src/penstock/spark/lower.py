"""A plan as one DataFrame: every message a row, every step a column expression on the rows that are there.

Nothing is computed twice: branches are values of the `at` column, not separate DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.patterns.aggregate import Aggregate
from penstock.patterns.balance import Balance
from penstock.patterns.choice import Choice
from penstock.patterns.content_filter import ContentFilter
from penstock.patterns.enrich import Enrich, EnrichFromTable
from penstock.patterns.filter import Filter
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.join import Join
from penstock.patterns.multicast import Multicast
from penstock.patterns.node import Node
from penstock.patterns.recipients import Recipients
from penstock.patterns.resequence import Resequence
from penstock.patterns.script import Script
from penstock.patterns.split import Split, SplitFields
from penstock.patterns.tap import Tap
from penstock.patterns.to import To
from penstock.patterns.translate import Translate
from penstock.plan.plan import Entry, Plan, PlannedRoute, Scope, Stage
from penstock.plan.stopping import stopping_stages
from penstock.reference.run import DECODE
from penstock.spark import content, copying, routing, script
from penstock.spark.decode import body_fields, decoded_type
from penstock.spark.family import with_stopped
from penstock.spark.frame import (
    AT,
    BAD_ERROR,
    BAD_REASON,
    DEAD,
    ERROR,
    ERROR_TYPE,
    OFFSET,
    ORDER,
    PARTITION,
    SCOPE,
    TOPIC,
    Places,
    change,
    field_column,
    here,
    scope_column,
)
from penstock.spark.python_functions import with_functions
from penstock.spark.state.aggregate import aggregate
from penstock.spark.state.buried import buried
from penstock.spark.state.receive import receive, with_forgotten
from penstock.spark.state.resequence import resequence
from penstock.spark.state.table import Snapshot
from penstock.spark.state.waiting import arrived, parked, resumed, scopes, waits, with_room
from penstock.spark.tally import came_to, nowhere
from penstock.spark.tries import exhausted, with_tries
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
_STATEFUL: dict[type[Node], Callable[[DataFrame, Stage, Places, Snapshot, list[Scope]], DataFrame]] = {
    Aggregate: aggregate,
    Resequence: resequence,
    Idempotent: receive,
}


def entered(plan: Plan, arriving: Mapping[str, DataFrame]) -> DataFrame:
    """The messages of all sources, each at the start of its route. `arriving` has them by the name of the route."""
    places = Places.of(plan)
    data: DataFrame | None = None
    for number, entry in enumerate(plan.entries):
        rows = enter(arriving[entry.route], entry, places)
        if places.ordered:
            rows = rows.withColumn(ORDER, order_of(number, F.array().cast("array<int>")))
        if waits(plan):
            rows = with_room(rows)
        rows = with_tries(rows, plan)
        data = rows if data is None else data.unionByName(rows, allowMissingColumns=True)
    assert data is not None
    return data


def lower(plan: Plan, data: DataFrame, snapshot: Snapshot | None = None, resumes_at: Collection[str] = ()) -> DataFrame:
    """All messages at their last place. The snapshot is what the steps with state hold before this batch.

    Messages may go on at the steps of `resumes_at`, beside those where they wait for another try.
    """
    places, waiting = Places.of(plan), waits(plan)
    for route_number, route in enumerate(plan.routes):
        data = _merge(data, route, places)
        data = arrived(data, route, places)
        resumes = route.waits or any(stage.title in places.undecided for stage in route.stages)
        for number, stage in enumerate(route.stages):
            data = came_to(data, stage, places)
            if resumes or stage.title in resumes_at:
                data = resumed(data, stage, places)
            if stage.node.stateful:
                assert snapshot is not None
                later = scopes(plan) if waiting else _scopes_after(plan, route_number, number)
                data = _remember(_without(data, plan, later), stage, places, snapshot, later)
            else:
                data = _step(data, stage, places)
        data = exhausted(data, route)
        if snapshot is not None:
            data = parked(data, route, places, snapshot)
    data = with_stopped(data, plan, places)
    return data if snapshot is None else with_forgotten(data, plan, snapshot)


def order_of(source: int, path: Column) -> Column:
    """The place of a message among those of its batch."""
    return F.struct(
        F.lit(source).alias("source"),
        F.col(TOPIC).alias("topic"),
        F.col(PARTITION).alias("partition"),
        F.col(OFFSET).alias("offset"),
        path.alias("path"),
    )


def _remember(data: DataFrame, stage: Stage, places: Places, snapshot: Snapshot, scopes: list[Scope]) -> DataFrame:
    data = with_functions(data, stage, places)
    result = _STATEFUL[type(stage.node)](data, stage, places, snapshot, scopes)
    if stage.node.rewrites:
        result = change(result, here(stage, places), {SCOPE: F.lit(stage.after.number)})
    return result


def _scopes_after(plan: Plan, route_number: int, stage_number: int) -> list[Scope]:
    """The bodies that somebody may read from this step on."""
    routes = plan.routes[route_number + 1 :]
    stages = [*plan.routes[route_number].stages[stage_number:], *(stage for route in routes for stage in route.stages)]
    read = [scope for stage in stages for scope in (stage.scope, stage.after)]
    read += [inflow.scope for route in routes for inflow in route.inflows]
    read += [inflow.scope for outlet in plan.outlets for inflow in outlet.inflows]
    read += [stage.after for stage in stopping_stages(plan)]
    return list({scope.number: scope for scope in read}.values())


def _without(data: DataFrame, plan: Plan, later: list[Scope]) -> DataFrame:
    """The rows without bodies that nobody reads any more: they need not travel."""
    kept = {scope.number for scope in later}
    dropped = [scope for scope in scopes(plan) if scope.number not in kept]
    return buried(data, plan, dropped).drop(*map(scope_column, dropped))


def enter(data: DataFrame, entry: Entry, places: Places) -> DataFrame:
    """Messages from a source at the start of their route; those that could not be decoded are dead."""
    start, bad = F.lit(places.routes[entry.route]), F.col(BAD_ERROR)
    no_error = F.lit(None).cast(ERROR_TYPE)
    columns = {SCOPE: F.lit(entry.scope.number), scope_column(entry.scope): body_fields(entry)}
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
    return data.withColumns({**columns, **nowhere(places)}).drop(*fields, BAD_ERROR, BAD_REASON)


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

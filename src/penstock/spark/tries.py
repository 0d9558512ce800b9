"""How often a message was tried: the count in its row, the header that tells it, and tries at once."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.patterns.redelivery import ERRORS, REDELIVERED
from penstock.plan.failing import needs_value
from penstock.plan.plan import Plan, PlannedRoute
from penstock.spark.frame import AT, DEAD, ERROR, HEADERS, change

TRIES = "tries"
TRIES_TYPE = "struct<route: string, count: int>"


def with_tries(rows: DataFrame, plan: Plan) -> DataFrame:
    """Rows with the column of tries, if somebody counts them."""
    counted = any(route.redelivery is not None for route in plan.routes)
    return rows.withColumn(TRIES, F.lit(None).cast(TRIES_TYPE)) if counted and TRIES not in rows.columns else rows


def attempt(route: Column | str) -> Column:
    """The number of the try that a message in this route is at."""
    mine = F.col(TRIES).getField("route") == (F.lit(route) if isinstance(route, str) else route)
    return F.when(mine, F.col(TRIES).getField("count")).otherwise(F.lit(1))


def at_try(route: str, tries: Column, headers: Column) -> dict[str, Column]:
    """The columns of a message that is at another try than its first."""
    return {
        TRIES: F.struct(F.lit(route).alias("route"), tries.alias("count")),
        HEADERS: with_header(headers, tries - 1),
    }


def with_header(headers: Column, before: Column) -> Column:
    """Headers that say how many tries there were before."""
    nothing = F.create_map().cast("map<string, string>")
    others = F.map_filter(F.coalesce(headers, nothing), lambda name, _: name != REDELIVERED)
    return F.map_concat(others, F.create_map(F.lit(REDELIVERED), before.cast("string")))


def tried(data: DataFrame, route: str, present: Column, tries: Column) -> DataFrame:
    """Messages that a step here has tried until now: those that needed more than one try tell it."""
    return change(data, present & (tries > attempt(route)), at_try(route, tries, F.col(HEADERS)))


def exhausted(data: DataFrame, route: PlannedRoute) -> DataFrame:
    """At the end of a route: where another try changes nothing, all tries at once are used up."""
    steps = [stage.node.name for stage in route.stages if stage.at_once is not None and needs_value(stage.node)]
    policy, error = route.redelivery, F.col(ERROR)
    if policy is None or not steps:
        return data
    dead = (F.col(AT) == DEAD) & (error.getField("route") == route.name) & error.getField("step").isin(*steps)
    covered = error.getField("error").isin(*(policy.errors or ERRORS))
    return tried(data, route.name, dead & covered, F.lit(policy.attempts + 1))

"""Parts and copies that are stopped, because too many before them have failed.

A step that may stop what it makes gives every part or copy a column that whatever is made of it inherits: its number,
how many there are, and how the row looked then. When all rows are at their last place, one window per step looks at
each family. What was made of a stopped member becomes one row again, as it was when it left the step, and dead.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.plan.plan import Plan, Stage
from penstock.plan.stopping import STOPPED, allowed, reason_of, stopping_stages
from penstock.spark.frame import (
    AT,
    COUNT,
    DEAD,
    ERROR,
    ID,
    INDEX,
    ORDER,
    PARENT,
    SCOPE,
    Places,
    change,
    error,
)

_NUMBER, _TOTAL = "number", "total"
_ROOT, _FAILED, _FIRST, _BEFORE, _STOPPED = "_root", "_failed", "_first", "_before", "_stopped"
_MOST = 2**31 - 1


def with_family(data: DataFrame, stage: Stage, places: Places, number: Column, total: Column) -> DataFrame:
    """Note whose members the messages are that were made here: those that have a total."""
    name = places.families.get(stage.title)
    if name is None:
        return data
    kept = (F.col(column) for column in _kept(places))
    member = F.struct(F.coalesce(number, F.lit(0)).alias(_NUMBER), total.alias(_TOTAL), *kept)
    return data.withColumn(name, F.when(total.isNotNull(), member))


def with_stopped(data: DataFrame, plan: Plan, places: Places) -> DataFrame:
    """The rows at their last place, those that are stopped as dead letters; inner families first."""
    for stage in reversed(stopping_stages(plan)):
        data = _without_later(data, stage, places)
    return data.drop(*places.families.values())


def _kept(places: Places) -> tuple[str, ...]:
    return ID, PARENT, INDEX, COUNT, ORDER, *places.visited


def _without_later(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    member = F.col(places.families[stage.title])
    number, path = member.getField(_NUMBER), F.col(ORDER).getField("path")
    dead = F.col(AT) == DEAD
    # A row outside of every family is alone under its own place, so that rows spread over the tasks.
    rows = data.withColumn(_ROOT, F.when(member.isNotNull(), _parent(member.getField(ORDER))).otherwise(F.col(ORDER)))
    ordered = Window.partitionBy(_ROOT).orderBy(number, path)
    whole = ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    seen = rows.withColumns(
        {
            _FAILED: F.array_sort(F.collect_set(F.when(dead, number)).over(whole)),
            _FIRST: F.first(F.when(dead, F.struct(number.alias(_NUMBER), ERROR)), ignorenulls=True).over(whole),
            _BEFORE: F.lag(number).over(ordered),
        }
    )
    last = F.get(F.col(_FAILED), _allowed(stage, member.getField(_TOTAL)))
    judged = seen.withColumn(_STOPPED, F.coalesce(number > last, F.lit(False)))
    kept = judged.filter(~F.col(_STOPPED) | ~F.col(_BEFORE).eqNullSafe(number))
    again = {name: member.getField(name) for name in _kept(places)}
    died = {AT: F.lit(DEAD), SCOPE: F.lit(stage.after.number), ERROR: _error(stage, member.getField(_TOTAL))}
    return change(kept, F.col(_STOPPED), again | died).drop(_ROOT, _FAILED, _FIRST, _BEFORE, _STOPPED)


def _parent(order: Column) -> Column:
    """The place of the message that was split or copied."""
    path = order.getField("path")
    return order.withField("path", F.slice(path, F.lit(1), F.size(path) - 1))


def _allowed(stage: Stage, total: Column) -> Column:
    """How many may fail: the next one is too many."""
    budget = allowed(stage)
    most = F.floor(F.lit(budget) * total) if isinstance(budget, float) else F.lit(min(budget, _MOST))
    return most.cast("int")


def _error(stage: Stage, total: Column) -> Column:
    number, first = F.col(_FIRST).getField(_NUMBER), F.col(_FIRST).getField(ERROR)
    failure = (first.getField(name) for name in ("error", "route", "step", "reason"))
    return error(stage, STOPPED, F.format_string(reason_of(stage), number + 1, total, *failure))

"""Parts and copies that are stopped, because too many before them have failed.

A step that may stop what it makes gives every part or copy a column that whatever is made of it inherits: its family,
its number, how many there are, and how the row looked then. When all rows are at their last place, one window per step
looks at each family. What was made of a stopped member becomes one row again, as it left the step, and dead.
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

_KEY, _ROW, _NUMBER, _TOTAL = "_key", "_row", "_member", "_members"
_FAILED, _FIRST, _BEFORE, _STOPPED = "_failed", "_first", "_before", "_stopped"
_MOST = 2**31 - 1


def with_roots(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    """The rows before copies are made. Their place says to which task a family goes, also when it is computed again; as
    sources may give one place and one id to several messages, a number tells them apart.
    """
    if stage.title not in places.families:
        return data
    return data.withColumns({_KEY: F.struct(ORDER, ID), _ROW: F.monotonically_increasing_id()})


def with_members(data: DataFrame, stage: Stage, places: Places, number: Column, total: Column) -> DataFrame:
    """The rows after copies were made, which have a total."""
    name = places.families.get(stage.title)
    if name is None:
        return data
    numbers = F.coalesce(number, F.lit(0)).alias(_NUMBER), total.alias(_TOTAL)
    member = F.struct(_KEY, _ROW, *numbers, *_kept(places))
    return data.withColumn(name, F.when(total.isNotNull(), member)).drop(_KEY, _ROW)


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
    # A row outside of every family goes by its own place, so that rows spread over the tasks.
    key = F.coalesce(member.getField(_KEY), F.struct(ORDER, ID))
    rows = data.withColumns({_KEY: key, _ROW: member.getField(_ROW)}).repartition(F.col(_KEY))
    ordered = Window.partitionBy(_KEY, _ROW).orderBy(number, path)
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
    return change(kept, F.col(_STOPPED), again | died).drop(_KEY, _ROW, _FAILED, _FIRST, _BEFORE, _STOPPED)


def _allowed(stage: Stage, total: Column) -> Column:
    """How many may fail: the next one is too many."""
    budget = allowed(stage)
    most = F.floor(F.lit(budget) * total) if isinstance(budget, float) else F.lit(min(budget, _MOST))
    return most.cast("int")


def _error(stage: Stage, total: Column) -> Column:
    number, first = F.col(_FIRST).getField(_NUMBER), F.col(_FIRST).getField(ERROR)
    failure = (first.getField(name) for name in ("error", "route", "step", "reason"))
    return error(stage, STOPPED, F.format_string(reason_of(stage), number + 1, total, *failure))

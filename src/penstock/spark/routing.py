"""Steps that decide where a message goes: one place per message, no copies."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.expr.nodes import Expr
from penstock.patterns.balance import RANDOM, STICKY, Balance
from penstock.patterns.choice import Choice
from penstock.patterns.filter import Filter
from penstock.patterns.node import DEAD as DEAD_POLICY
from penstock.patterns.to import To
from penstock.plan.plan import Stage
from penstock.reference.steps import MISSING_FIELD, missing_reason
from penstock.spark.context import context_of
from penstock.spark.expressions import lower, lower_predicate
from penstock.spark.frame import AT, DEAD, ERROR, ID, INDEX, OFFSET, Places, answer_column, change, error, here


def filter_messages(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, Filter)
    strict = node.missing == DEAD_POLICY
    (test,) = _tests(stage, (node.predicate,), strict)
    out = places.channel(node.discard) if node.discard else places.filtered(stage)
    if not strict:
        return data.withColumn(AT, F.when(here(stage, places) & ~test, F.lit(out)).otherwise(F.col(AT)))
    place = F.when(test, F.col(AT)).when(test.isNull(), F.lit(DEAD)).otherwise(F.lit(out))
    return _moved(data, stage, places, place, MISSING_FIELD, F.lit(missing_reason(node.predicate)))


def choose(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, Choice)
    strict = node.missing == DEAD_POLICY
    tests = _tests(stage, node.expressions(), strict)
    place: Column | None = None
    reason: Column | None = None
    for (channel, condition), test in zip(node.cases, tests, strict=True):
        if strict:
            place = _when(place, test.isNull(), DEAD)
            said = F.lit(missing_reason(condition))
            reason = F.when(test.isNull(), said) if reason is None else reason.when(test.isNull(), said)
        place = _when(place, test, places.channel(channel))
    assert place is not None
    place = place.otherwise(F.lit(places.channel(node.otherwise)))
    if reason is not None:
        return _moved(data, stage, places, place, MISSING_FIELD, reason)
    return change(data, here(stage, places), {AT: place})


def _tests(stage: Stage, conditions: tuple[Expr, ...], strict: bool) -> list[Column]:
    """A column for each condition. A decoder that answered says if it is true, or which one of a choice applies."""
    if stage.answer is None:
        context = context_of(stage, strict)
        return [lower_predicate(condition, context) for condition in conditions]
    answer = F.col(answer_column(stage.answer))
    if isinstance(stage.node, Choice):
        return [answer == F.lit(number) for number in range(len(conditions))]
    return [answer]


def _when(place: Column | None, test: Column, number: int) -> Column:
    return F.when(test, F.lit(number)) if place is None else place.when(test, F.lit(number))


def balance(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, Balance)
    if node.strategy == STICKY:
        assert node.key is not None
        key = lower(node.key, context_of(stage)).cast("string")
        number = _turn(node, key)
    elif node.strategy == RANDOM:
        number = _turn(node, F.col(ID))
    else:
        number = F.coalesce(F.col(INDEX), F.col(OFFSET)).cast("bigint")
    limits = node.limits()
    turn = number % F.lit(limits[-1])
    place: Column | None = F.when(number.isNull(), F.lit(DEAD)) if node.strategy == STICKY else None
    for target, limit in zip(node.targets, limits, strict=True):
        place = _when(place, turn < limit, places.channel(target))
    assert place is not None
    if node.strategy == STICKY:
        return _moved(data, stage, places, place, MISSING_FIELD, F.lit("the sticky key is missing"))
    return change(data, here(stage, places), {AT: place})


def _turn(node: Balance, value: Column) -> Column:
    digest = F.md5(F.concat(F.lit(f"{node.seed}:"), value).cast("binary"))
    return F.conv(F.substring(digest, 1, 8), 16, 10).cast("bigint")


def send(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    assert isinstance(stage.node, To)
    return change(data, here(stage, places), {AT: F.lit(places.channel(stage.node.channel))})


def _moved(data: DataFrame, stage: Stage, places: Places, place: Column, kind: str, reason: Column) -> DataFrame:
    """To the place, which may be DEAD for this one reason."""
    moved = data.withColumn("_place", F.when(here(stage, places), place))
    died = F.col("_place") == DEAD
    return moved.withColumns(
        {
            ERROR: F.when(died, error(stage, kind, reason)).otherwise(F.col(ERROR)),
            AT: F.coalesce(F.col("_place"), F.col(AT)),
        }
    ).drop("_place")

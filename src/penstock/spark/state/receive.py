"""The idempotent receiver in a plan."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.patterns.idempotent import Idempotent
from penstock.patterns.key import NO_VALUE
from penstock.plan.plan import Plan, Scope, Stage
from penstock.spark.frame import AT, BODY, DEAD, ID, NOTE, RESUME, WAITING, Places, change, here
from penstock.spark.state.keys import HIGH, LOW
from penstock.spark.state.receiving import Receiving
from penstock.spark.state.remember import key_text, remembered, with_key
from penstock.spark.state.rows import KEY
from penstock.spark.state.table import Snapshot
from penstock.spark.state.task import SECOND
from penstock.spark.state.waiting import ADMITTED, DUE
from penstock.spark.tally import nowhere

_ASKED, _IS_NOTE = "_asked", "_is_note"


def receive(data: DataFrame, stage: Stage, places: Places, snapshot: Snapshot, scopes: Iterable[Scope]) -> DataFrame:
    node = stage.node
    assert isinstance(node, Idempotent)
    key = key_text(stage, node.key) if node.key else F.col(ID)
    keyed = with_key(data, stage, places, key, F.col(KEY), node.invalid, NO_VALUE)
    duplicates = places.channel(node.duplicates) if node.duplicates else places.filtered(stage)
    keep = None if node.keep is None else round(node.keep * SECOND)
    oldest = snapshot.oldest(stage.title, node.keep_last)
    if stage.title not in places.undecided:
        algorithm = Receiving(keep, oldest, duplicates, duplicates)
        return remembered(keyed, stage, places, snapshot, algorithm, scopes)
    number = list(places.filters).index(stage.title)
    admitted = F.struct(
        F.lit(number).alias("step"), F.col(HIGH).alias("high"), F.col(LOW).alias("low"),
        F.lit(snapshot.moment.batch).cast("bigint").alias("batch"),
    )  # fmt: skip
    before = F.coalesce(F.col(ADMITTED), F.array().cast(keyed.schema[ADMITTED].dataType))
    asked = keyed.withColumn(_ASKED, here(stage, places))
    asked = change(asked, F.col(_ASKED), {ADMITTED: F.concat(before, F.array(admitted))})
    algorithm = Receiving(keep, oldest, duplicates, WAITING)
    result = remembered(asked, stage, places, snapshot, algorithm, scopes)
    refused = F.col(_ASKED) & (F.col(AT) != places.routes[stage.route])
    stripped = F.slice(F.col(ADMITTED), 1, F.array_size(ADMITTED) - 1)
    waits = {
        DUE: F.lit(snapshot.moment.now + 1),
        RESUME: F.lit(places.resume(stage)),
    }
    decided = change(result, refused, {ADMITTED: stripped})
    return change(decided, F.col(_ASKED) & (F.col(AT) == WAITING), waits).drop(_ASKED)


def with_forgotten(data: DataFrame, plan: Plan, snapshot: Snapshot) -> DataFrame:
    """Beside each message that failed, a note of the keys that let it through in this batch: they are forgotten."""
    if not Places.of(plan).undecided:
        return data
    titles = F.array(*(F.lit(stage.title) for stage in plan.stages()))
    mine = F.filter(F.col(ADMITTED), lambda one: one.getField("batch") == snapshot.moment.batch)
    failed = F.col(AT).isin(DEAD, WAITING) & (F.array_size(mine) > 0)
    both = F.when(failed, F.array(F.lit(False), F.lit(True))).otherwise(F.array(F.lit(False)))
    doubled = data.select("*", F.explode(both).alias(_IS_NOTE))
    forget = F.transform(
        mine,
        lambda one: F.struct(
            F.element_at(titles, one.getField("step") + 1).alias("step"),
            one.getField("high").alias("high"),
            one.getField("low").alias("low"),
        ),
    )
    text = F.to_json(F.struct(forget.alias("forget"))).cast("binary")
    note = {AT: F.lit(NOTE), BODY: text, **nowhere(Places.of(plan))}
    return change(doubled, F.col(_IS_NOTE), note).drop(_IS_NOTE)

"""The body of a dead letter, as it was at the step that failed: what the letter needs to go on there."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.endpoints.simple import Void
from penstock.plan.plan import Plan, Scope
from penstock.spark.frame import AT, BURIED, DEAD, SCOPE, change, scope_column
from penstock.spark.state.waiting import scopes


def body_text(data: DataFrame, plan: Plan) -> Column:
    """The current body as JSON text; null where it is still the original one, which is there as it came."""
    carried = [scope for scope in scopes(plan) if scope_column(scope) in data.columns]
    return _text(carried, F.col(BURIED) if BURIED in data.columns else F.lit(None).cast("string"))


def buried(data: DataFrame, plan: Plan, dropped: Iterable[Scope]) -> DataFrame:
    """The rows, with the bodies of dead letters as text where the columns that hold them are about to be dropped."""
    lost = [scope for scope in dropped if not scope.raw and scope_column(scope) in data.columns]
    if not lost or isinstance(plan.dead_letters, Void):
        return data
    dead = (F.col(AT) == DEAD) & F.col(SCOPE).isin(*(scope.number for scope in lost))
    return change(data, dead, {BURIED: _text(lost, F.lit(None).cast("string"))})


def _text(scopes: Iterable[Scope], otherwise: Column) -> Column:
    text = otherwise
    for scope in scopes:
        if not scope.raw:
            # Nulls are written, so that a field that nobody read then can be told from one without a value.
            json = F.to_json(scope_column(scope), {"ignoreNullFields": "false"}) if scope.wanted.fields else F.lit("{}")
            text = F.when(F.col(SCOPE) == scope.number, json).otherwise(text)
    return text

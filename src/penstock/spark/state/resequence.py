"""The resequencer in a plan."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.patterns.key import NO_VALUE
from penstock.patterns.resequence import NO_NUMBER, Resequence
from penstock.plan.plan import Scope, Stage
from penstock.spark.context import context_of
from penstock.spark.expressions import lower
from penstock.spark.frame import AT, ERROR, Places, here, scope_column
from penstock.spark.state.crossing import arrow_schema, outgoing
from penstock.spark.state.keys import HIGH, LOW
from penstock.spark.state.remember import fates_of, key_text, remembered, with_key
from penstock.spark.state.resequencing import Resequencing
from penstock.spark.state.rows import KEY, SEQUENCE
from penstock.spark.state.table import Snapshot

_NOT_CARRIED = (AT, ERROR, HIGH, LOW, KEY, SEQUENCE)


def resequence(data: DataFrame, stage: Stage, places: Places, snapshot: Snapshot, scopes: Iterable[Scope]) -> DataFrame:
    node = stage.node
    assert isinstance(node, Resequence)
    number = lower(node.sequence, context_of(stage))
    key = key_text(stage, node.by) if node.by else F.lit("")
    reason = F.when(key.isNull(), F.lit(NO_VALUE)).otherwise(F.lit(NO_NUMBER))
    keyed = with_key(
        data.withColumn(SEQUENCE, F.when(here(stage, places), number)),
        stage, places, F.when(number.isNotNull(), key), F.col(KEY), node.invalid, reason,
    )  # fmt: skip
    known = {scope_column(scope): scope for scope in scopes}
    present = {name: scope for name, scope in known.items() if name in keyed.columns}
    bare = outgoing(keyed.drop(*_NOT_CARRIED, *places.visited), present)
    algorithm = Resequencing(
        node.size, node.window, node.first, node.timeout, node.late, node.duplicate, node.on_timeout,
        node.on_stop or snapshot.on_stop, fates_of(stage, places), arrow_schema(bare.schema),
        node.keep,
    )  # fmt: skip
    return remembered(keyed, stage, places, snapshot, algorithm, scopes, inputs=[SEQUENCE])

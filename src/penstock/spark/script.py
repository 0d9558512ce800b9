"""The script step: the user's function over Arrow batches; when a batch fails, its messages are tried one by one."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.functions import arrow_udf

from penstock.formats.arrow import arrow_type
from penstock.patterns.script import Script
from penstock.plan.plan import Stage
from penstock.reference.steps import SCRIPT_FAILED, scripted_rows
from penstock.schema import Struct
from penstock.spark.copying import PART, parts
from penstock.spark.frame import AT, DEAD, ERROR, Places, error, here, scope_column
from penstock.spark.tries import attempt, tried
from penstock.spark.types import spark_type

_RESULT = "_script"


def run(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    node = stage.node
    assert isinstance(node, Script)
    bodies, schema = spark_type(node.returns), stage.scope.schema

    last = stage.tries(SCRIPT_FAILED)

    def scripted(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for batch, tries in batches:
            yield run_batch(node, batch, schema, tries.to_pylist(), last)

    result = spark.StructType(
        [
            spark.StructField("parts", spark.ArrayType(bodies)),
            spark.StructField("error", spark.StringType()),
            spark.StructField("tries", spark.IntegerType()),
        ]
    )
    udf = arrow_udf(scripted, result)  # type: ignore[call-overload]
    present, tries = here(stage, places), attempt(stage.route) if last else F.lit(1)
    computed = data.withColumn(_RESULT, udf(F.when(present, F.col(scope_column(stage.scope))), tries))
    problem = F.col(_RESULT).getField("error")
    if last:
        computed = tried(computed, stage.route, present, F.col(_RESULT).getField("tries"))
    checked = computed.withColumns(
        {
            ERROR: F.when(problem.isNotNull(), error(stage, SCRIPT_FAILED, problem)).otherwise(F.col(ERROR)),
            AT: F.when(problem.isNotNull(), F.lit(DEAD)).otherwise(F.col(AT)),
        }
    )
    made = F.col(_RESULT).getField("parts")
    return parts(checked, stage, places, made, {scope_column(stage.after): F.col(PART)}, fewest=2).drop(_RESULT)


def run_batch(
    node: Script, batch: pa.StructArray, schema: Struct, tries: list[int] | None = None, last: int = 0
) -> pa.StructArray:
    """Per message: the bodies the script made of it, or why it failed, and at which try; null where it is elsewhere.

    `tries` are the numbers of the first try; messages that fail at a try up to the `last` get another one.
    """
    tries = tries or [1] * len(batch)
    wanted = pa.schema([(name, arrow_type(kind)) for name, kind in schema.fields])
    table = pa.Table.from_arrays(batch.flatten(), schema=wanted)
    rows = [index for index, valid in enumerate(batch.is_valid().to_pylist()) if valid]
    made: list[list[object] | None] = [None] * len(batch)
    problems: list[str | None] = [None] * len(batch)
    while rows:
        for row in rows:
            problems[row] = None
        _try(node, table, rows, made, problems)
        rows = [row for row in rows if problems[row] is not None and tries[row] <= last]
        for row in rows:
            tries[row] += 1
    kind = pa.list_(pa.field("element", arrow_type(node.returns)))
    columns = [pa.array(made, kind), pa.array(problems, pa.string()), pa.array(tries, pa.int32())]
    return pa.StructArray.from_arrays(columns, names=["parts", "error", "tries"])


def _try(
    node: Script, table: pa.Table, rows: list[int], made: list[list[object] | None], problems: list[str | None]
) -> None:
    alone = len(rows) == 1
    given = table.slice(rows[0], 1) if alone else table.take(pa.array(rows, pa.int32()))
    try:
        results = scripted_rows(node, node.function(given), len(rows))
    except Exception as problem:
        if alone:
            problems[rows[0]] = f"{type(problem).__name__}: {problem}"
            return
        for row in rows:
            _try(node, table, [row], made, problems)
        return
    for row in rows:
        made[row] = []
    for row, body in results:
        place = made[rows[row]]
        assert place is not None
        place.append(body)

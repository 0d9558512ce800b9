"""Where the expressions of a step find their columns."""

from __future__ import annotations

from pyspark.sql import functions as F

from penstock.plan.plan import Stage
from penstock.spark.expressions import Context
from penstock.spark.frame import HEADERS, scope_column
from penstock.spark.python_functions import function_columns


def context_of(stage: Stage, strict: bool = False) -> Context:
    return Context(
        body=F.col(scope_column(stage.scope)),
        schema=stage.scope.schema,
        headers=F.col(HEADERS),
        strict=strict,
        functions=function_columns(stage),
    )

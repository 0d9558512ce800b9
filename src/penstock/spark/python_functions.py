"""Python functions inside expressions: computed over Arrow before their step, a failure kills only its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from penstock.expr import nodes
from penstock.expr.evaluate import conformed
from penstock.expr.nodes import Expr, Function
from penstock.plan.plan import Stage
from penstock.reference.steps import FUNCTION_FAILED, used_expressions
from penstock.schema import Type
from penstock.spark.frame import AT, DEAD, ERROR, Places, error, here
from penstock.spark.types import spark_type


@cache
def functions_of(stage: Stage) -> tuple[Function, ...]:
    """The functions of a step, inner ones first; those inside any(...) and select(...) cannot be computed before."""
    found: dict[Function, None] = {}

    def visit(expression: Expr) -> None:
        if isinstance(expression, (nodes.AnyOf, nodes.Select)):
            visit(expression.collection)
            return
        for child in expression.children():
            visit(child)
        if isinstance(expression, Function):
            found[expression] = None

    for expression in used_expressions(stage):
        visit(expression)
    return tuple(found)


def _name(index: int) -> str:
    return f"_f{index}"


def function_columns(stage: Stage) -> Mapping[Expr, Column]:
    return {function: F.col(_name(index)).getField("value") for index, function in enumerate(functions_of(stage))}


def with_functions(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    """The DataFrame with the results of the step's Python functions; messages for which one failed are dead."""
    from penstock.spark.context import context_of
    from penstock.spark.expressions import lower

    functions = functions_of(stage)
    if not functions:
        return data
    context, present = context_of(stage), here(stage, places)
    for index, function in enumerate(functions):
        arguments = [lower(argument, context) for argument in function.arguments]
        data = data.withColumn(_name(index), _udf(function.function, function.returns)(present, *arguments))
    problem = F.coalesce(*(F.col(_name(index)).getField("error") for index in range(len(functions))))
    return data.withColumns(
        {
            ERROR: F.when(problem.isNotNull(), error(stage, FUNCTION_FAILED, problem)).otherwise(F.col(ERROR)),
            AT: F.when(problem.isNotNull(), F.lit(DEAD)).otherwise(F.col(AT)),
        }
    )


def _udf(function: Callable[..., Any], returns: Type) -> Callable[..., Column]:
    def call(present: bool, *arguments: Any) -> dict[str, Any] | None:
        if not present:
            return None
        try:
            return {"value": conformed(function(*map(plain, arguments)), returns), "error": None}
        except Exception as problem:
            return {"value": None, "error": f"{type(problem).__name__}: {problem}"}

    result = spark.StructType(
        [spark.StructField("value", spark_type(returns)), spark.StructField("error", spark.StringType())]
    )
    return F.udf(call, result, useArrow=True)


def plain(value: Any) -> Any:
    """Rows as dicts, as the reference gives them to functions."""
    if isinstance(value, Row):
        return {name: plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.toPython() if isinstance(value, spark.VariantVal) else value

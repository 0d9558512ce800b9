"""Python functions inside expressions: computed over Arrow before their step, a failure kills only its message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from penstock.expr import nodes
from penstock.expr.evaluate import Scope, conformed, evaluate
from penstock.expr.nodes import Expr, Function
from penstock.patterns.redelivery import REDELIVERED
from penstock.plan.plan import Stage
from penstock.plan.retrying import counts_tries
from penstock.reference.steps import FUNCTION_FAILED, used_expressions
from penstock.spark.frame import AT, DEAD, ERROR, Places, error, here
from penstock.spark.tries import attempt, tried, with_header
from penstock.spark.types import spark_type

_TRIED = nodes.Field((REDELIVERED,), nodes.HEADER)
_MOST_KNOWN = 1000
_PLAIN = (nodes.Literal, nodes.Call, nodes.Compare, nodes.Case, nodes.Lookup)


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
    if stage.tries(FUNCTION_FAILED):
        data = _with_tries(data, stage, present)
    else:
        for index, function in enumerate(functions):
            arguments = [lower(argument, context) for argument in function.arguments]
            data = data.withColumn(_name(index), _udf(function)(present, *arguments))
    problem = F.coalesce(*(F.col(_name(index)).getField("error") for index in range(len(functions))))
    return data.withColumns(
        {
            ERROR: F.when(problem.isNotNull(), error(stage, FUNCTION_FAILED, problem)).otherwise(F.col(ERROR)),
            AT: F.when(problem.isNotNull(), F.lit(DEAD)).otherwise(F.col(AT)),
        }
    )


def _with_tries(data: DataFrame, stage: Stage, present: Column) -> DataFrame:
    """Results of functions that are called again at once when they fail; the tries of a step add up."""
    tries, fine = attempt(stage.route), present
    for index, function in enumerate(functions_of(stage)):
        udf = _counting_udf if reads_only_tries(function) else _retrying_udf
        called = udf(function, stage)(fine, tries, *_arguments(function, stage, tries))
        data = data.withColumn(_name(index), called)
        result = F.col(_name(index))
        tries = F.coalesce(result.getField("tries"), tries)
        fine = fine & result.getField("error").isNull()
    return tried(data, stage.route, present, tries)


def _arguments(function: Function, stage: Stage, tries: Column) -> list[Column]:
    """The arguments of a function; or one list of them, a struct for each try, if they tell one from another.

    Where the header alone tells it, Python counts: the header comes first, then the other arguments.
    """
    from penstock.spark.context import context_of
    from penstock.spark.expressions import lower

    context, first = context_of(stage), attempt(stage.route)
    if not counts_tries(function):
        return [lower(argument, context) for argument in function.arguments]
    if reads_only_tries(function):
        others = [argument for argument in function.arguments if not _is_known(argument)]
        return [lower(argument, context) for argument in (_TRIED, *others)]

    def at(number: Column) -> Column:
        later = with_header(context.headers, number - 1)
        there = replace(context, headers=F.when(number > first, later).otherwise(context.headers))
        return F.struct(*(lower(argument, there).alias(f"_{n}") for n, argument in enumerate(function.arguments)))

    return [F.transform(F.sequence(tries, F.greatest(tries, F.lit(stage.tries(FUNCTION_FAILED) + 1))), at)]


def _udf(function: Function) -> Callable[..., Column]:
    def call(present: bool, *arguments: Any) -> dict[str, Any] | None:
        return _called(function, arguments) if present else None

    return F.udf(call, _result(function), useArrow=True)


def _retrying_udf(function: Function, stage: Stage) -> Callable[..., Column]:
    last, listed = stage.tries(FUNCTION_FAILED), counts_tries(function)

    def call(present: bool, tries: int, *arguments: Any) -> dict[str, Any] | None:
        if not present:
            return None
        number = tries
        while True:
            result = _called(function, arguments[0][number - tries] if listed else arguments)
            if result["error"] is None or number > last:
                return {**result, "tries": number}
            number += 1

    return F.udf(call, _result(function).add("tries", spark.IntegerType()), useArrow=True)


def _counting_udf(function: Function, stage: Stage) -> Callable[..., Column]:
    last, calls = stage.tries(FUNCTION_FAILED), function.function
    places = [index for index, argument in enumerate(function.arguments) if not _is_known(argument)]

    known: dict[str | None, list[Any]] = {}

    def computed(header: str | None) -> list[Any]:
        """The arguments that follow from the header, with room for the others."""
        scope = Scope({}, {} if header is None else {REDELIVERED: header})
        if len(known) > _MOST_KNOWN:
            known.clear()
        known[header] = [evaluate(one, scope) if _is_known(one) else None for one in function.arguments]
        return known[header]

    def call(present: bool, tries: int, header: str | None, *others: Any) -> dict[str, Any] | None:
        if not present:
            return None
        number = tries
        while True:
            arguments = known.get(header) or computed(header)
            if places:
                for place, other in zip(places, others, strict=True):
                    arguments[place] = plain(other)
            try:
                value = conformed(calls(*arguments), function.returns)
                return {"value": value, "error": None, "tries": number}
            except Exception as problem:
                if number > last:
                    return {"value": None, "error": _said(problem), "tries": number}
            header = str(number)
            number += 1

    return F.udf(call, _result(function).add("tries", spark.IntegerType()), useArrow=True)


def reads_only_tries(function: Function) -> bool:
    """Whether the arguments that tell one try from another read nothing but the header that counts them."""
    counting = [argument for argument in function.arguments if counts_tries(argument)]
    parts = [part for argument in counting for part in argument.walk()]
    return bool(counting) and all(part == _TRIED if isinstance(part, nodes.Field) else isinstance(part, _PLAIN)
                                  for part in parts)  # fmt: skip


def _is_known(argument: Expr) -> bool:
    """Whether an argument follows from the number of the try."""
    return isinstance(argument, nodes.Literal) or counts_tries(argument)


def _called(function: Function, arguments: Iterable[Any]) -> dict[str, Any]:
    try:
        return {"value": conformed(function.function(*map(plain, arguments)), function.returns), "error": None}
    except Exception as problem:
        return {"value": None, "error": _said(problem)}


def _said(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"


def _result(function: Function) -> spark.StructType:
    value = spark.StructField("value", spark_type(function.returns))
    return spark.StructType([value, spark.StructField("error", spark.StringType())])


def plain(value: Any) -> Any:
    """Rows as dicts, as the reference gives them to functions."""
    if isinstance(value, Row):
        return {name: plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.toPython() if isinstance(value, spark.VariantVal) else value

"""The meaning of every strategy: the members of a group in, one body out."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

import pyarrow

from penstock.expr import exact
from penstock.expr.evaluate import conformed
from penstock.expr.exact import held
from penstock.expr.functions import finite, integer
from penstock.expr.types import type_of
from penstock.formats.arrow import arrow_type
from penstock.message import Message
from penstock.patterns.strategy import (
    AGGREGATE_FAILED,
    COUNT,
    FIRST,
    FOLD_FAILED,
    LAST,
    MAX,
    MEAN,
    MIN,
    Collect,
    Custom,
    Fold,
    Latest,
    Strategy,
    Union,
    overflow_reason,
)
from penstock.plan.plan import Stage
from penstock.reference.steps import Failure, narrowed, value_of
from penstock.schema import Struct


def member_values(stage: Stage, strategy: Strategy, message: Message) -> tuple[Any, ...]:
    """What the strategy computes of a member, once, when it arrives."""
    kinds = [type_of(expression, stage.scope.schema) for expression in strategy.expressions()]
    values = [value_of(stage, expression, message) for expression in strategy.expressions()]
    return tuple(conformed(value, kind) for value, kind in zip(values, kinds, strict=True))


def combined(strategy: Strategy, body: Struct, members: Sequence[tuple[Message, tuple[Any, ...]]]) -> dict[str, Any]:
    """The body of the aggregate; a failure is that of the whole group."""
    if isinstance(strategy, Fold):
        return _folded(strategy, [values for _, values in members])
    bodies = [narrowed(message.fields or {}, body) for message, _ in members]
    match strategy:
        case Collect(into, of, head, tail):
            listed = bodies if of is None else [fields[of] for fields in bodies]
            before = {name: bodies[0][name] for name in head}
            return {**before, into: listed, **{name: bodies[-1][name] for name in tail}}
        case Union():
            return {name: _last_there([fields[name] for fields in bodies]) for name in body.names}
        case Latest():
            return bodies[-1]
        case Custom():
            return _custom(strategy, body, bodies)
    raise AssertionError(f"no meaning for {strategy!r}")


def _last_there(values: list[Any]) -> Any:
    return next((value for value in reversed(values) if value is not None), None)


def _folded(strategy: Fold, members: list[tuple[Any, ...]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    column = 0
    for name, function, value in strategy.folds:
        if value is None:
            result[name] = len(members)
            continue
        values = [member[column] for member in members]
        column += 1
        result[name] = _fold(name, function, values)
    return result


def _fold(name: str, function: str, values: list[Any]) -> Any:
    if function in (FIRST, LAST):
        return values[0] if function == FIRST else values[-1]
    there = [value for value in values if value is not None]
    if function == COUNT:
        return len(there)
    if not there:
        return None
    if function in (MIN, MAX):
        return min(there) if function == MIN else max(there)
    if isinstance(there[0], Decimal):
        total = exact.total(there)
        return _fitting(name, exact.quotient(total, len(there)) if function == MEAN else total)
    if function == MEAN:
        return _fitting(name, _added([float(value) for value in there]) / len(there))
    return _fitting(name, _added(there))


def _added(values: list[Any]) -> Any:
    # From left to right: Python's own sum of doubles is more exact than that.
    return reduce(add, values)


def _fitting(name: str, total: Any) -> Any:
    fitting = integer(total) if isinstance(total, int) else finite(total) if isinstance(total, float) else held(total)
    if fitting is None:
        raise Failure(FOLD_FAILED, overflow_reason(name))
    return fitting


def _custom(strategy: Custom, body: Struct, bodies: list[dict[str, Any]]) -> dict[str, Any]:
    schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in body.fields])
    try:
        return combined_row(strategy, strategy.function(pyarrow.Table.from_pylist(bodies, schema=schema)))
    except Exception as error:
        raise Failure(AGGREGATE_FAILED, f"{type(error).__name__}: {error}") from None


def combined_row(strategy: Custom, result: pyarrow.Table) -> dict[str, Any]:
    """The one row that a function returned; raises ValueError when it is not what was declared."""
    if result.num_rows != 1:
        raise ValueError(f"an aggregate is one row, and {result.num_rows} came out")
    wanted = pyarrow.schema([(name, arrow_type(kind)) for name, kind in strategy.returns.fields])
    row: dict[str, Any] = result.select(wanted.names).cast(wanted).to_pylist()[0]
    return row

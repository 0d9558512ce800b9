"""Expressions as Spark columns: the same tree, the same answers, no Python at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.errors import UnsupportedOnSpark
from penstock.expr import nodes
from penstock.expr.evaluate import expression_key
from penstock.expr.nodes import Expr
from penstock.expr.types import NULL, element_of, type_of
from penstock.expr.variant import bind
from penstock.expr.variant_nodes import VariantNode
from penstock.schema import DOUBLE, EMPTY, VARIANT, Path, Struct, Type
from penstock.spark.functions import ARITHMETIC, finite, lower_call
from penstock.spark.types import spark_type
from penstock.spark.variant import lower_variant

_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_LARGE_LOOKUP = 16


@dataclass(frozen=True)
class Context:
    """Where an expression finds its columns. `functions` holds the results of Python functions, computed before."""

    body: Column
    schema: Struct
    headers: Column
    item: Column | None = None
    item_type: Type = EMPTY
    strict: bool = False
    functions: Mapping[Expr, Column] = field(default_factory=dict)

    def kind(self, expression: Expr) -> Type:
        return type_of(expression, self.schema, self.item_type)


def lower(expression: Expr, context: Context) -> Column:
    """The column of an expression; null where the value is missing."""
    return _lower(bind(expression, context.schema), context)


def lower_predicate(expression: Expr, context: Context) -> Column:
    """The column of a condition: true or false, or null for missing when the context is strict."""
    column = lower(expression, context)
    return column if context.strict else F.coalesce(column, F.lit(False))


def _lower(expression: Expr, context: Context) -> Column:
    match expression:
        case nodes.Field(path, nodes.HEADER):
            return F.try_element_at(context.headers, F.lit(path[0]))
        case nodes.Field(path, root):
            return _at(_root(context, root), path)
        case nodes.Meta(name):
            return F.col(name)
        case nodes.Literal(value):
            return F.lit(value)
        case nodes.Compare(symbol, left, right):
            return _decided(_COMPARISONS[symbol](_lower(left, context), _lower(right, context)), context)
        case nodes.And(terms):
            return reduce(lambda left, right: left & right, [_truth(term, context) for term in terms])
        case nodes.Or(terms):
            return reduce(lambda left, right: left | right, [_truth(term, context) for term in terms])
        case nodes.Not(term):
            return ~_truth(term, context)
        case nodes.In(value, options):
            return _decided(_lower(value, context).isin(*options), context)
        case nodes.Present(value):
            return _lower(value, context).isNotNull()
        case nodes.AnyOf(collection, predicate):
            found = F.exists(_lower(collection, context), _inner(collection, predicate, context))
            return F.coalesce(found, F.lit(False))
        case nodes.Select(collection, predicate):
            return F.filter(_lower(collection, context), _inner(collection, predicate, context))
        case nodes.Case():
            return _case(expression, context)
        case nodes.Lookup():
            return _lookup(expression, context)
        case nodes.Call():
            column = _call(expression, context)
            return finite(column) if _may_overflow(expression, context) else column
        case nodes.Function(_, _, _, name):
            if expression not in context.functions:
                raise UnsupportedOnSpark(
                    f"the Python function {name} inside any(...) or select(...)",
                    fix="apply it to the whole collection, or use a script step",
                )
            return context.functions[expression]
        case nodes.XPath():
            return context.body.getField(expression_key(expression))
        case nodes.JsonPath(query, unsupported):
            raise UnsupportedOnSpark(f"the JSONPath {query} uses {unsupported or 'what Spark cannot follow'}")
    if isinstance(expression, VariantNode):
        return lower_variant(expression, _lowering(context), context.strict)
    raise AssertionError(f"no column for {expression!r}")


def _lowering(context: Context) -> Callable[..., Column]:
    """What `lower_variant` needs of the rest of the tree: other columns, with another item or this one."""

    def lowered(expression: Expr, item: Column | None = None) -> Column:
        return _lower(expression, context if item is None else replace(context, item=item, item_type=VARIANT))

    return lowered


def _call(call: nodes.Call, context: Context) -> Column:
    kinds, result = [context.kind(argument) for argument in call.arguments], context.kind(call)
    columns = [_operand(call, index, context) for index in range(len(call.arguments))]
    if call.name == "coalesce":
        columns = [column.cast(spark_type(result)) for column in columns]
    return lower_call(call, columns, kinds, result)


def _operand(call: nodes.Call, index: int, context: Context) -> Column:
    """An argument. Infinity inside arithmetic stays so until the end, except as a divisor: x / infinity is 0."""
    argument = call.arguments[index]
    is_divisor = call.name == "divide" and index == 1
    if call.name in ARITHMETIC and not is_divisor and isinstance(argument, nodes.Call):
        return _call(argument, context)
    return _lower(argument, context)


def _may_overflow(call: nodes.Call, context: Context) -> bool:
    return context.kind(call) == DOUBLE and call.name in (*ARITHMETIC, "to_double")


def _decided(column: Column, context: Context) -> Column:
    """A comparison with something missing is false, or stays missing in a strict context."""
    return column if context.strict else F.coalesce(column, F.lit(False))


def _truth(term: Expr, context: Context) -> Column:
    column = _lower(term, context)
    decided = isinstance(term, (nodes.Compare, nodes.In, nodes.And, nodes.Or, nodes.Not, nodes.Present, nodes.AnyOf))
    return column if context.strict or decided else F.coalesce(column, F.lit(False))


def _root(context: Context, root: str) -> Column:
    if root == nodes.ITEM:
        assert context.item is not None
        return context.item
    return context.body


def _at(column: Column, path: Path) -> Column:
    for part in path:
        if isinstance(part, str):
            column = column.getField(part)
        else:
            column = F.get(column, F.lit(part)) if part >= 0 else F.try_element_at(column, F.lit(part))
    return column


def _inner(collection: Expr, predicate: Expr, context: Context) -> Callable[[Column], Column]:
    element = element_of(context.kind(collection))

    def test(item: Column) -> Column:
        inside = replace(context, item=item, item_type=element, functions={})
        return F.coalesce(_lower(predicate, inside), F.lit(False))

    return test


def _case(case: nodes.Case, context: Context) -> Column:
    kind = context.kind(case)
    result: Column | None = None
    for test, value in case.branches:
        truth = F.coalesce(_lower(test, context), F.lit(False))
        typed = _typed(_lower(value, context), kind)
        result = F.when(truth, typed) if result is None else result.when(truth, typed)
    assert result is not None
    return result.otherwise(_typed(_lower(case.otherwise, context), kind))


def _lookup(lookup: nodes.Lookup, context: Context) -> Column:
    kind, value = context.kind(lookup), _lower(lookup.value, context)
    otherwise = _typed(_lower(lookup.otherwise, context), kind)
    if len(lookup.entries) > _LARGE_LOOKUP and all(entry is not None for _, entry in lookup.entries):
        flat = [part for key, entry in lookup.entries for part in (F.lit(key), _typed(F.lit(entry), kind))]
        return F.coalesce(F.try_element_at(F.create_map(*flat), value), otherwise)
    result: Column | None = None
    for key, entry in lookup.entries:
        typed = _typed(F.lit(entry), kind)
        result = F.when(value == F.lit(key), typed) if result is None else result.when(value == F.lit(key), typed)
    return otherwise if result is None else result.otherwise(otherwise)


def _typed(column: Column, kind: Type) -> Column:
    return column if kind == NULL else column.cast(spark_type(kind))

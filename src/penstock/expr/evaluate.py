"""The plain-Python meaning of an expression: one message, one value. Everything else must agree with this."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.expr import nodes
from penstock.expr.functions import FUNCTIONS
from penstock.expr.nodes import Expr
from penstock.expr.variant_nodes import VariantCompare, VariantNode
from penstock.expr.variant_values import evaluate_variant
from penstock.schema import DOUBLE, Path, Type, fits
from penstock.values import canonical

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression sees of a message. With `strict`, a comparison with something missing is missing itself."""

    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    item: Any = None
    strict: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)


def evaluate(expression: Expr, scope: Scope) -> Any:
    """The value of an expression, None when it is missing."""
    match expression:
        case nodes.Field(path, root):
            return follow(_root(scope, root), path)
        case nodes.Meta(name):
            return scope.meta.get(name)
        case nodes.Literal(value):
            return value
        case nodes.Compare(symbol, left, right):
            return compare(symbol, evaluate(left, scope), evaluate(right, scope), None if scope.strict else False)
        case nodes.And(terms):
            return _first((evaluate(term, scope) for term in terms), False)
        case nodes.Or(terms):
            return _first((evaluate(term, scope) for term in terms), True)
        case nodes.Not(term):
            value = evaluate(term, scope)
            return (None if scope.strict else True) if value is None else not value
        case nodes.In(value, options):
            found = evaluate(value, scope)
            if found is None:
                return None if scope.strict else False
            return any(compare("==", found, option, False) for option in options)
        case nodes.Present(value):
            return evaluate(value, scope) is not None
        case nodes.AnyOf(collection, predicate):
            return len(_selected(collection, predicate, scope) or ()) > 0
        case nodes.Select(collection, predicate):
            return _selected(collection, predicate, scope)
        case nodes.Case(branches, otherwise):
            for test, value in branches:
                if evaluate(test, scope):
                    return evaluate(value, scope)
            return evaluate(otherwise, scope)
        case nodes.Lookup(value, entries, otherwise):
            found = evaluate(value, scope)
            for key, entry in entries:
                if found is not None and compare("==", found, key, False):
                    return entry
            return evaluate(otherwise, scope)
        case nodes.Call(name, arguments):
            values = [evaluate(argument, scope) for argument in arguments]
            if name != "coalesce" and any(value is None for value in values):
                return None
            return FUNCTIONS[name].meaning(*values)
        case nodes.Function(function, returns, arguments):
            return conformed(function(*(evaluate(argument, scope) for argument in arguments)), returns)
        case nodes.XPath() | nodes.JsonPath():
            return scope.body.get(expression_key(expression))
        case VariantNode():
            return _variant(expression, scope)
    raise AssertionError(f"no meaning for {expression!r}")


def conformed(value: Any, kind: Type) -> Any:
    """What a Python function returned, as the declared type has it."""
    if kind == DOUBLE and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    value = canonical(value, kind)
    if not fits(value, kind):
        raise TypeError(f"{value!r} is not {kind}")
    return value


def expression_key(expression: Expr) -> str:
    """The name under which a decoder leaves the value of a path that only it can follow."""
    assert isinstance(expression, (nodes.XPath, nodes.JsonPath))
    if isinstance(expression, nodes.XPath):
        prefixes = "".join(f" {prefix}={name}" for prefix, name in expression.namespaces)
        return f"xpath {expression.kind} {expression.path}{prefixes}"
    return f"jsonpath {expression.query}"


def follow(value: Any, path: Path) -> Any:
    for part in path:
        if isinstance(part, int) and isinstance(value, (list, tuple)):
            value = value[part] if -len(value) <= part < len(value) else None
        elif isinstance(part, str) and isinstance(value, Mapping):
            value = value.get(part)
        else:
            return None
    return value


def compare(symbol: str, left: Any, right: Any, missing: bool | None) -> bool | None:
    """Exact numbers meet doubles as doubles, as everywhere in Spark."""
    if left is None or right is None:
        return missing
    if isinstance(left, float) != isinstance(right, float):
        left, right = float(left), float(right)
    return _COMPARISONS[symbol](left, right)


def _root(scope: Scope, root: str) -> Any:
    return {nodes.BODY: scope.body, nodes.HEADER: scope.headers, nodes.ITEM: scope.item}[root]


def _first(values: Any, decisive: bool) -> bool | None:
    """Three-valued logic: one decisive value decides, then anything missing makes the whole missing."""
    unknown = False
    for value in values:
        if value is None:
            unknown = True
        elif bool(value) is decisive:
            return decisive
    return None if unknown else not decisive


def _selected(collection: Expr, predicate: Expr, scope: Scope) -> list[Any] | None:
    elements = evaluate(collection, scope)
    if elements is None:
        return None
    return [element for element in elements if evaluate(predicate, replace(scope, item=element))]


def _variant(expression: Expr, scope: Scope) -> Any:
    def look(inner: Expr, item: Any = scope.item) -> Any:
        return evaluate(inner, replace(scope, item=item))

    value = evaluate_variant(expression, look)
    unknown = value is None and isinstance(expression, VariantCompare) and not scope.strict
    return False if unknown else value

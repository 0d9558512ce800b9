"""Fit a checked expression to a schema: whatever looks inside a VARIANT becomes a node of `variant_nodes`.

A number that is an alternative to a DOUBLE becomes one, and an exact one gets the type of all alternatives. To compare
with null asks for a missing value where the type is known, and for JSON's null in a VARIANT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from typing import Any

from penstock.errors import BadExpression, UnknownField
from penstock.expr import nodes
from penstock.expr.nodes import Expr, Field, Literal
from penstock.expr.query import read_condition
from penstock.expr.types import NULL, element_of, type_of
from penstock.expr.variant_nodes import (
    Segment,
    VariantCompare,
    VariantField,
    VariantNode,
    VariantNodes,
    VariantPresent,
    Where,
)
from penstock.schema import DOUBLE, EMPTY, VARIANT, DecimalType, Struct, Type, resolve
from penstock.values import exactly

__all__ = ["VariantNode", "bind", "rebuild"]


def bind(expression: Expr, body: Struct, item: Type = EMPTY) -> Expr:
    """The expression that `evaluate` and Spark take. It has to have a type: call `type_of` first."""

    def again(part: Expr) -> Expr:
        return bind(part, body, item)

    def is_variant(part: Expr) -> bool:
        return type_of(part, body, item) == VARIANT

    match expression:
        case VariantNode() | Field(root=nodes.HEADER):
            return expression
        case Field(root=root):
            return _split(expression, item if root == nodes.ITEM else body) or expression
        case nodes.Compare(operator, left, right) if is_variant(left) or is_variant(right):
            return VariantCompare(operator, again(left), again(right))
        case nodes.Compare(operator, left, Literal(None)) | nodes.Compare(operator, Literal(None), left):
            present = nodes.Present(again(left))
            return present if operator == "!=" else nodes.Not(present)
        case nodes.In(value, options) if is_variant(value):
            return _any_equal(again(value), options)
        case nodes.Present(value) if is_variant(value):
            found = again(value)
            return VariantPresent(found) if isinstance(found, VariantField) else nodes.Present(found)
        case nodes.AnyOf(collection, predicate) | nodes.Select(collection, predicate):
            kind = type_of(collection, body, item)
            test = bind(predicate, body, element_of(kind))
            if kind != VARIANT:
                return type(expression)(again(collection), test)
            selected = _selected(again(collection), test)
            return VariantPresent(selected) if isinstance(expression, nodes.AnyOf) else selected
        case nodes.Lookup(value, entries, otherwise) if is_variant(value):
            subject = again(value)
            branches = tuple((VariantCompare("==", subject, Literal(key)), Literal(entry)) for key, entry in entries)
            return nodes.Case(branches, again(otherwise))
        case nodes.JsonPath(query):
            try:
                return _ground(read_condition(query), body)
            except UnknownField:
                return expression
        case nodes.Case(branches, otherwise) if _widens(wanted := type_of(expression, body, item)):
            widened = tuple((again(test), _widened(value, wanted, body, item)) for test, value in branches)
            return nodes.Case(widened, _widened(otherwise, wanted, body, item))
        case nodes.Lookup(value, entries, otherwise) if _widens(wanted := type_of(expression, body, item)):
            numbers = tuple((key, _as_number(entry, wanted)) for key, entry in entries)
            return nodes.Lookup(again(value), numbers, _widened(otherwise, wanted, body, item))
        case nodes.Call("coalesce", values) if _widens(wanted := type_of(expression, body, item)):
            return nodes.Call("coalesce", tuple(_widened(value, wanted, body, item) for value in values))
    return rebuild(expression, again)


def _widens(kind: Type) -> bool:
    """Whether alternatives of this type may have another one."""
    return kind == DOUBLE or isinstance(kind, DecimalType)


def _widened(value: Expr, wanted: Type, body: Struct, item: Type) -> Expr:
    """An alternative of a number: a narrower one among them gets the type of all."""
    bound, kind = bind(value, body, item), type_of(value, body, item)
    if kind in (wanted, NULL):
        return bound
    if isinstance(bound, Literal):
        return Literal(_as_number(bound.value, wanted))
    if isinstance(wanted, DecimalType):
        return nodes.Call("to_decimal", (bound, Literal(wanted.precision), Literal(wanted.scale)))
    return nodes.Call("to_double", (bound,))


def _as_number(value: Any, wanted: Type) -> Any:
    if value is None:
        return None
    return exactly(Decimal(value), wanted) if isinstance(wanted, DecimalType) else float(value)


def rebuild(expression: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The same node with its direct children changed."""

    def changed(value: Any) -> Any:
        if isinstance(value, Expr):
            return change(value)
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    return type(expression)(**{part.name: changed(getattr(expression, part.name)) for part in fields(expression)})


def _split(field: Field, kind: Type) -> VariantField | None:
    """The field as a way into the VARIANT column on its path, if there is one."""
    for length in range(len(field.path) + 1):
        if resolve(kind, field.path[:length]) == VARIANT:
            return VariantField(Field(field.path[:length], field.root), field.path[length:])
    return None


def _any_equal(value: Expr, options: tuple[nodes.Value, ...]) -> Expr:
    tests = tuple(VariantCompare("==", value, Literal(option)) for option in options)
    return nodes.Or(tests) if len(tests) > 1 else tests[0] if tests else Literal(False)


def _selected(collection: Expr, predicate: Expr) -> VariantNodes:
    if not isinstance(collection, VariantField):
        raise BadExpression("any and select look into a VARIANT field, not into a computed VARIANT")
    return VariantNodes(collection, (Segment((Where(predicate),)),))


def _ground(tree: Expr, body: Struct) -> Expr:
    """Start every path of a JSONPath in a VARIANT column; UnknownField where a path stays among typed fields."""
    if isinstance(tree, VariantField):
        if tree.column.root == nodes.ITEM:
            return tree
        field = _split(Field(tree.path), body)
        if field is None:
            raise UnknownField(f"{tree.path} is not in a VARIANT")
        return field
    return rebuild(tree, lambda part: _ground(part, body))

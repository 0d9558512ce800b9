"""The JSONPath front end (RFC 9535).

`jsonpath("@.total < 100 && @.status == 'P'")` is a condition on the body, which both `@` and `$` name there.
`jsonpath("$.lines[?@.price > 5]")` is true when the query finds something.

A query becomes the tree that the other front ends make, and so works on typed fields, as long as it consists of
names, indexes, wildcards, filters, comparisons, existence tests, `&&`, `||` and `!`. On typed fields a null is a
missing value; inside a VARIANT the RFC holds to the letter. Anything else (slices, `..`, functions) becomes a
JsonPath node, which is evaluated message by message, on the original JSON body or inside a VARIANT.
"""

from __future__ import annotations

from typing import Any

from penstock.expr import nodes
from penstock.expr.columns import Column
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.nodes import ITEM, Expr, Field, Literal
from penstock.expr.query import read_condition, read_query
from penstock.expr.variant_nodes import (
    Every,
    Segment,
    Slice,
    VariantCall,
    VariantCompare,
    VariantField,
    VariantNodes,
    VariantPresent,
    Where,
)
from penstock.expr.variant_values import compare_json
from penstock.schema import Path


def jsonpath(text: str) -> Column:
    """A condition: a filter expression that holds, or a query that finds something."""
    return Column(predicate(text))


def predicate(text: str) -> Expr:
    try:
        return _plain(read_condition(text))
    except _Beyond as feature:
        return nodes.JsonPath(text, str(feature))


def find(query: str, document: Any) -> list[Any]:
    """The values that a query finds in a document."""
    found: list[Any] = evaluate(read_query(query), Scope(document))
    return found


def holds(text: str, document: Any) -> bool:
    """Whether a document satisfies a condition as `jsonpath` takes it."""
    return bool(evaluate(read_condition(text), Scope(document)))


class _Beyond(Exception):
    """The feature that only a VARIANT can answer."""


def _plain(tree: Expr) -> Expr:
    """The tree in nodes that know nothing of VARIANT."""
    match tree:
        case nodes.And(terms):
            return nodes.And(tuple(map(_plain, terms)))
        case nodes.Or(terms):
            return nodes.Or(tuple(map(_plain, terms)))
        case nodes.Not(term):
            return nodes.Not(_plain(term))
        case VariantPresent(VariantField() as field):
            return nodes.Present(_operand(field))
        case VariantPresent(VariantNodes(start, segments)):
            return _finds(Field(start.path, start.column.root), segments)
        case VariantCompare(operator, left, right):
            return _compared(operator, _operand(left), _operand(right))
        case VariantCall(name):
            raise _Beyond(f"function {name}()")
    raise AssertionError(f"no plain form of {tree!r}")


def _operand(tree: Expr) -> Expr:
    match tree:
        case VariantField(column, path):
            return Field(path, column.root)
        case VariantCall(name):
            raise _Beyond(f"function {name}()")
    return tree


def _compared(operator: str, left: Expr, right: Expr) -> Expr:
    """A comparison that is never missing: as in the RFC, nothing equals nothing, and `!=` is not `==`."""
    if operator == "!=":
        return nodes.Not(_compared("==", left, right))
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(compare_json(operator, left.value, right.value))
    if any(isinstance(side, Literal) and isinstance(side.value, bool | None) for side in (left, right)):
        # true, false and null have no order, so only the "or equal" part remains.
        return nodes.Compare("==", left, right) if operator.endswith("=") else Literal(False)
    compared = nodes.Compare(operator, left, right)
    if operator.endswith("=") and isinstance(left, Field) and isinstance(right, Field):
        neither = nodes.And((nodes.Not(nodes.Present(left)), nodes.Not(nodes.Present(right))))
        return nodes.Or((compared, neither))
    return compared


def _finds(start: Field, segments: tuple[Segment, ...]) -> Expr:
    """Whether the segments find something from `start`."""
    if not segments:
        return nodes.Present(start)
    first, rest = segments[0], segments[1:]
    if first.descendants:
        raise _Beyond("descendant segment ..")
    found = [_selected(start, selector, rest) for selector in first.selectors]
    return nodes.Or(tuple(found)) if len(found) > 1 else found[0]


def _selected(start: Field, selector: object, rest: tuple[Segment, ...]) -> Expr:
    match selector:
        case str() | int():
            path: Path = (*start.path, selector)
            return _finds(Field(path, start.root), rest)
        case Slice():
            raise _Beyond("slice selector")
        case Every() if not rest:
            return nodes.AnyOf(start, Literal(True))
        case Every():
            return nodes.AnyOf(start, _finds(Field((), ITEM), rest))
        case Where(condition) if not rest:
            return nodes.AnyOf(start, _plain(condition))
        case Where(condition):
            return nodes.AnyOf(start, nodes.And((_plain(condition), _finds(Field((), ITEM), rest))))
    raise AssertionError(f"no plain form of {selector!r}")

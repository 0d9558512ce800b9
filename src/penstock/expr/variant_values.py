"""The plain-Python meaning of VARIANT nodes, which is RFC 9535's.

A VARIANT is a plain Python JSON value: None is JSON's null, and where there is no value at all, there is NOTHING.
A null where a whole VARIANT column should be is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from penstock.expr.nodes import Expr, Literal
from penstock.expr.patterns import cost, is_pattern, matches, search
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
from penstock.schema import Path


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()
Look = Callable[..., Any]
"""`look(expression)` evaluates any expression; `look(expression, item)` does so for another item."""
_MOST_STEPS = 100_000_000
"""Of a pattern that the message itself brings; about a second."""


def evaluate_variant(expression: Expr, look: Look) -> Any:
    """The value of a VARIANT node; None for a comparison with nothing. `look` evaluates all other nodes."""
    match expression:
        case VariantNodes(start, segments):
            values: Iterable[Any] = _given(json_value(start, look))
            for segment in segments:
                values = [found for value in values for found in _select(segment, value, look)]
            return list(values)
        case VariantPresent(VariantNodes() as several):
            return len(evaluate_variant(several, look)) > 0
        case VariantPresent(value):
            return json_value(value, look) is not NOTHING
        case VariantCompare(symbol, left, right, total):
            sides = json_value(left, look), json_value(right, look)
            known = total or not any(side is NOTHING for side in sides)
            return compare_json(symbol, *sides) if known else None
    value = json_value(expression, look)
    return None if value is NOTHING else value


def json_value(expression: Expr, look: Look) -> Any:
    """The JSON value of an expression, or NOTHING."""
    match expression:
        case VariantField(column, path):
            value = look(column)
            return NOTHING if value is None and column.path else follow_json(value, path)
        case VariantCall(name, arguments):
            return _call(name, arguments, look)
        case Literal(value):
            return value
    value = look(expression)
    return NOTHING if value is None else value


def follow_json(value: Any, path: Path) -> Any:
    for part in path:
        if isinstance(part, str):
            inside = isinstance(value, Mapping) and part in value
        else:
            inside = isinstance(value, (list, tuple)) and -len(value) <= part < len(value)
        if not inside:
            return NOTHING
        value = value[part]
    return value


def compare_json(symbol: str, left: Any, right: Any) -> bool:
    """RFC 9535, section 2.3.5.2.2. Integers meet doubles, and integers beyond 64 bits, as doubles."""
    if symbol in ("==", "!="):
        return _equal(left, right) is (symbol == "==")
    if symbol in (">", ">="):
        left, right = right, left
    return _less(left, right) or (len(symbol) == 2 and _equal(left, right))


def _less(left: Any, right: Any) -> bool:
    if _is_number(left) and _is_number(right):
        left, right = _numbers(left, right)
        return bool(left < right)
    return isinstance(left, str) and isinstance(right, str) and left < right


def _equal(left: Any, right: Any) -> bool:
    if _is_number(left) and _is_number(right):
        left, right = _numbers(left, right)
        return bool(left == right)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    return type(left) is type(right) and bool(left == right)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _numbers(left: Any, right: Any) -> tuple[Any, Any]:
    if all(isinstance(side, int) and -(2**63) <= side < 2**63 for side in (left, right)):
        return left, right
    return _double(left), _double(right)


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _given(value: Any) -> list[Any]:
    return [] if value is NOTHING else [value]


def _children(value: Any) -> list[Any]:
    """Elements in order; member values in the order of their names, which RFC 9535 leaves open and Spark sorts."""
    if isinstance(value, Mapping):
        return [value[name] for name in sorted(value, key=_in_java_order)]
    return list(value) if isinstance(value, (list, tuple)) else []


def _in_java_order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _below(value: Any) -> Iterator[Any]:
    yield value
    for child in _children(value):
        yield from _below(child)


def _select(segment: Segment, value: Any, look: Look) -> Iterator[Any]:
    for node in _below(value) if segment.descendants else [value]:
        for selector in segment.selectors:
            match selector:
                case Every():
                    yield from _children(node)
                case Where(predicate):
                    yield from (child for child in _children(node) if look(predicate, child))
                case Slice(start, stop, step):
                    if isinstance(node, (list, tuple)) and step != 0:
                        yield from node[start:stop:step]
                case str() | int():
                    yield from _given(follow_json(node, (selector,)))


def _call(name: str, arguments: tuple[Expr, ...], look: Look) -> Any:
    if name in ("count", "value"):
        found = evaluate_variant(arguments[0], look)
        if name == "count":
            return len(found)
        return found[0] if len(found) == 1 else NOTHING
    values = [json_value(argument, look) for argument in arguments]
    if name == "length":
        return len(values[0]) if isinstance(values[0], (str, list, tuple, Mapping)) else NOTHING
    text, pattern = values
    if not (isinstance(text, str) and isinstance(pattern, str) and is_pattern(pattern)):
        return False
    if not isinstance(arguments[1], Literal) and len(text) * cost(pattern) > _MOST_STEPS:
        raise ValueError(f"the message brings a pattern of too many steps for a text of {len(text):,} characters")
    return (matches if name == "match" else search)(text, pattern)

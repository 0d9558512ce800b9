"""VARIANT on Spark: the nodes of `expr.variant_nodes` as Columns.

Here nothing is SQL's NULL, and JSON's null is a variant like any other. Variant casts are lenient ("5" becomes
5.0), so a cast value counts only together with its kind. Whole arrays and objects are compared by their JSON
text: Spark keeps 1 and 1.0 alike, but a number written with an exponent differs there from one without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iregexp_check import check as is_portable_pattern
from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.errors import UnsupportedOnSpark
from penstock.expr import nodes
from penstock.expr.functions import python_pattern
from penstock.expr.nodes import Expr, Field, Literal
from penstock.expr.variant_nodes import (
    Every,
    Segment,
    Selector,
    Slice,
    VariantCall,
    VariantCompare,
    VariantField,
    VariantNodes,
    VariantPresent,
    Where,
)
from penstock.expr.variant_values import NOTHING, compare_json, json_value
from penstock.schema import Path

Lower = Callable[..., Column]
"""`lower(expression)` gives any expression's Column; `lower(expression, item)` does so for another item."""

_LARGEST_INDEX = 2**31 - 2
_EXACT_DOUBLE = 2**53
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def lower_variant(expression: Expr, lower: Lower, strict: bool = False) -> Column:
    """The Column of a VARIANT node: VARIANT, ARRAY<VARIANT> of VariantNodes, or BOOLEAN."""
    match expression:
        case VariantField():
            return _value(expression, lower)
        case VariantNodes(start, segments):
            return _nodes(_value(start, lower), segments, lower)
        case VariantPresent(VariantNodes(start, segments)):
            return _finds(_value(start, lower), segments, lower)
        case VariantPresent(value):
            return _value(value, lower).isNotNull()
        case VariantCompare(operator, left, right, total):
            return _compare(operator, left, right, lower, total, strict)
        case VariantCall(name, arguments):
            return _call(name, arguments, lower)
    raise AssertionError(f"not a VARIANT node: {expression!r}")


def _value(expression: Expr, lower: Lower) -> Column:
    """Any operand as a VARIANT."""
    match expression:
        case VariantField(Field((), nodes.ITEM) as item, path):
            # A null in an ARRAY<VARIANT> is JSON's null: the element is there.
            return _follow(F.coalesce(lower(item), F.parse_json(F.lit("null"))), path)
        case VariantField(column, path):
            return _follow(lower(column), path)
        case VariantCall("value"):
            return lower_variant(expression, lower)
        case Literal(None):
            return F.parse_json(F.lit("null"))
        case VariantCall():
            return lower_variant(expression, lower).cast("bigint").cast("variant")
    return lower(expression).cast("variant")


def _as(value: Column, kind: str) -> Column:
    return F.try_variant_get(value, "$", kind)


def _kind(value: Column) -> Column:
    return F.schema_of_variant(value)


def _is_number(value: Column) -> Column:
    return _kind(value).rlike("^(BIGINT|DECIMAL|DOUBLE|FLOAT)")


def _follow(value: Column, path: Path) -> Column:
    text = "$"
    for part in path:
        if isinstance(part, str) and not ("'" in part and '"' in part):
            quote = '"' if "'" in part else "'"
            text += f"[{quote}{part}{quote}]"
        elif isinstance(part, int) and 0 <= part <= _LARGEST_INDEX:
            text += f"[{part}]"
        else:
            # Spark's paths know neither negative indexes nor names with both quotes.
            value, text = _step(_get(value, text), part), "$"
    return _get(value, text)


def _get(value: Column, path: str) -> Column:
    return value if path == "$" else F.try_variant_get(value, path, "variant")


def _step(value: Column, part: str | int) -> Column:
    if isinstance(part, str):
        return F.try_element_at(_as(value, "map<string,variant>"), F.lit(part))
    if abs(part) > _LARGEST_INDEX:
        return F.lit(None).cast("variant")
    return F.try_element_at(_as(value, "array<variant>"), F.lit(part))


def _children(value: Column) -> Column:
    return F.coalesce(_as(value, "array<variant>"), F.map_values(_as(value, "map<string,variant>")))


def _finds(value: Column, segments: tuple[Segment, ...], lower: Lower) -> Column:
    match segments:
        case (Segment((Where(predicate),), False),):
            found = F.exists(_children(value), lambda item: lower(predicate, item))
            return F.coalesce(found, F.lit(False))
    return F.size(_nodes(value, segments, lower)) > 0


def _nodes(value: Column, segments: tuple[Segment, ...], lower: Lower) -> Column:
    """Selectors answer NULL where a value has no children; it is dropped after each segment and at the end."""
    if not segments:
        return F.array_compact(F.array(value))
    found = _segment(segments[0], lower)(value)
    for segment in segments[1:]:
        found = F.flatten(F.array_compact(F.transform(found, _segment(segment, lower))))
    return F.coalesce(found, F.array().cast("array<variant>"))


def _segment(segment: Segment, lower: Lower) -> Callable[[Column], Column]:
    if segment.descendants:
        raise UnsupportedOnSpark("JSONPath on Spark has no descendant segment ..",
                                 fix="name the fields on the way, or use * for one level")  # fmt: skip

    def select(value: Column) -> Column:
        found = [_select(selector, value, lower) for selector in segment.selectors]
        return F.flatten(F.array_compact(F.array(*found))) if len(found) > 1 else found[0]

    return select


def _select(selector: Selector, value: Column, lower: Lower) -> Column:
    match selector:
        case Every():
            return _children(value)
        case Where(predicate):
            return F.filter(_children(value), lambda item: lower(predicate, item))
        case Slice():
            # The detour gives the array a name, so that its size is not computed from the VARIANT for each element.
            elements = F.array_compact(F.array(_as(value, "array<variant>")))
            return F.flatten(F.transform(elements, lambda array: _slice(array, selector)))
        case str() | int():
            return F.array_compact(F.array(_follow(value, (selector,))))


def _slice(array: Column, bounds: Slice) -> Column:
    """RFC 9535, section 2.3.4.2.2."""
    step = 1 if bounds.step is None else bounds.step
    size = F.size(array).cast("bigint")
    if step == 0:
        return F.filter(array, lambda _: F.lit(False))

    def bound(given: int | None, default: Column, low: Column, high: Column) -> Column:
        if given is None:
            return default
        index = F.lit(given).cast("bigint")
        return F.least(F.greatest(index if given >= 0 else size + index, low), high)

    if step > 0:
        zero = F.lit(0).cast("bigint")
        start, stop = bound(bounds.start, zero, zero, size), bound(bounds.stop, size, zero, size)
        return F.filter(array, lambda _, i: (i >= start) & (i < stop) & ((i - start) % F.lit(step) == 0))
    before, last = F.lit(-1).cast("bigint"), size - 1
    start, stop = bound(bounds.start, last, before, last), bound(bounds.stop, before, before, last)
    chosen = F.filter(array, lambda _, i: (i <= start) & (i > stop) & ((start - i) % F.lit(-step) == 0))
    return F.reverse(chosen)


def _compare(operator: str, left: Expr, right: Expr, lower: Lower, total: bool, strict: bool) -> Column:
    fixed, other_fixed = _constant(left), _constant(right)
    if fixed and other_fixed:
        return F.lit(compare_json(operator, fixed[0], other_fixed[0]))
    if fixed:
        return _compare(_MIRRORED.get(operator, operator), right, left, lower, total, strict)
    one = _value(left, lower)
    symbol = "==" if operator == "!=" else operator
    if other_fixed:
        nothing = one.isNull()
        compared = _against(symbol, one, other_fixed[0])
    else:
        other = _value(right, lower)
        nothing = one.isNull() | other.isNull()
        compared = _both(symbol, one, other)
        if total and symbol.endswith("="):
            compared = compared | (one.isNull() & other.isNull())
    result = ~compared if operator == "!=" else compared
    if strict and not total:
        return F.when(~nothing, result)
    return ~nothing & result if operator == "!=" and not total else result


def _constant(expression: Expr) -> tuple[Any] | None:
    """The value of an operand that no message changes, as a tuple of one."""
    if isinstance(expression, Literal):
        return (expression.value,)
    if isinstance(expression, VariantCall) and all(isinstance(part, Literal) for part in expression.arguments):
        return (json_value(expression, _refuse_to_look),)
    return None


def _refuse_to_look(expression: Expr) -> Any:
    raise AssertionError(f"{expression!r} is not constant")


def _both(operator: str, one: Column, other: Column) -> Column:
    """Compare two values of the message; false where one is nothing."""
    integers = _apply(operator, _as(one, "bigint"), _as(other, "bigint"))
    doubles = _apply(operator, _as(one, "double"), _as(other, "double"))
    texts = _apply(operator, _as(one, "string"), _as(other, "string"))
    equal = F.to_json(one) == F.to_json(other) if operator.endswith("=") else F.lit(False)
    compared = F.when((_kind(one) == "BIGINT") & (_kind(other) == "BIGINT"), integers)
    compared = compared.when(_is_number(one) & _is_number(other), doubles)
    compared = compared.when((_kind(one) == "STRING") & (_kind(other) == "STRING"), texts)
    return F.coalesce(compared.otherwise(equal), F.lit(False))


def _against(operator: str, value: Column, constant: Any) -> Column:
    """Compare with a constant; false where the value is nothing.

    The value is cast first, which is cheap, and its kind is read only on success.
    """
    if constant is NOTHING:
        return value.isNull() if operator.endswith("=") else F.lit(False)
    if isinstance(constant, bool | None) and not operator.endswith("="):
        return F.lit(False)
    if constant is None:
        return F.is_variant_null(value)
    if isinstance(constant, bool):
        return F.coalesce(_as(value, "boolean") == constant, F.lit(False)) & (_kind(value) == "BOOLEAN")
    if isinstance(constant, str):
        compared = _apply(operator, _as(value, "string"), F.lit(constant))
        return F.coalesce(compared, F.lit(False)) & (_kind(value) == "STRING")
    compared = _apply(operator, _as(value, "double"), F.lit(float(constant)))
    if isinstance(constant, int) and abs(constant) >= _EXACT_DOUBLE:
        exact = _apply(operator, _as(value, "bigint"), F.lit(constant))
        compared = F.when(_kind(value) == "BIGINT", exact).otherwise(compared)
    return F.coalesce(compared, F.lit(False)) & _is_number(value)


def _apply(operator: str, left: Column, right: Column) -> Column:
    match operator:
        case "==":
            return left == right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right


def _call(name: str, arguments: tuple[Expr, ...], lower: Lower) -> Column:
    constant = _constant(VariantCall(name, arguments))
    if constant is not None:
        return F.lit(None if constant[0] is NOTHING else constant[0])
    if name in ("count", "value"):
        found = lower_variant(arguments[0], lower)
        return F.size(found) if name == "count" else F.when(F.size(found) == 1, F.element_at(found, 1))
    value = _value(arguments[0], lower)
    text = F.when(_kind(value) == "STRING", _as(value, "string"))
    if name == "length":
        sizes = F.array_size(_as(value, "array<variant>")), F.array_size(F.map_keys(_as(value, "map<string,variant>")))
        return F.coalesce(*sizes, F.length(text))
    pattern = _constant(arguments[1])
    if pattern is None:
        raise UnsupportedOnSpark(f"JSONPath {name}() on Spark takes its pattern from the query, not from the message",
                                 fix="write the pattern as a text in quotes")  # fmt: skip
    if not isinstance(pattern[0], str) or not is_portable_pattern(pattern[0]):
        return F.lit(False)
    regular = python_pattern(pattern[0])
    return F.coalesce(text.rlike(rf"\A(?:{regular})\z" if name == "match" else regular), F.lit(False))

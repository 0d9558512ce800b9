"""VARIANT in the reference, and the same on Spark."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.expr import nodes
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.nodes import Field, Literal
from penstock.expr.text import parse
from penstock.expr.types import type_of
from penstock.expr.variant import bind
from penstock.expr.variant_nodes import VariantCompare, VariantField, VariantPresent
from penstock.expr.variant_values import NOTHING, compare_json
from penstock.schema import schema

SCHEMA = schema("v VARIANT, n BIGINT, s STRING, items ARRAY<VARIANT>, lines ARRAY<STRUCT<w: VARIANT>>")
BODY = {
    "v": {"x": [1, "2", None, {"y": 5}], "z": None}, "n": 3, "s": None,
    "items": [None, {"y": 1}], "lines": [{"w": None}, {"w": {"y": 2}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value", "strict"),
    [
        ("v.x[0] = 1", True, True),
        ("v.x[0] = '1'", False, False),
        ("v.x[0] != '1'", True, True),
        ("v.x[1] > 1", False, False),
        ("v.z IS NULL", False, False),
        ("v.z = NULL", True, True),
        ("v.nowhere IS NULL", True, True),
        ("v.nowhere = NULL", False, None),
        ("v.nowhere != 1", False, None),
        ("s = NULL", True, True),
        ("s != NULL", False, False),
        ("v.x[3].y = n + 2", True, True),
        ("n < v.x[3].y", True, True),
        ("s = v.x[1]", False, None),
        ("any(v.x, item.y > 4)", True, True),
        ("any(v, item = NULL)", True, True),
        ("select(v.x, item > 0)", [1], [1]),
        ("any(items, item = NULL)", True, True),
        ("any(items, item.y = 1)", True, True),
        ("any(lines, item.w IS NULL)", True, True),
        ("v.x[0] IN (2, 1)", True, True),
        ("v.nowhere IN (2, 1)", False, None),
        ("lookup(v.x[0], 1, 'one', 'other')", "one", "one"),
        ("jsonpath('$.v.x[1:3]')", True, True),
        ("jsonpath('$.v..y')", True, True),
        ("jsonpath('length($.v.x) == 4 && $.v.none == $.v.either')", True, True),
    ],
)
def test_an_expression_on_a_variant_means(text: str, value: Any, strict: Any) -> None:
    tree = parse(text)
    type_of(tree, SCHEMA)
    bound = bind(tree, SCHEMA)
    assert bind(bound, SCHEMA) == bound
    assert evaluate(bound, Scope(BODY)) == value
    assert evaluate(bound, Scope(BODY, strict=True)) == strict


def test_bind_leaves_typed_fields_alone() -> None:
    tree = parse("n > 1 AND any(lines, item.w.y = 2)")
    w = VariantField(Field(("w",), nodes.ITEM), ("y",))
    assert bind(tree, SCHEMA) == nodes.And((
        nodes.Compare(">", Field(("n",)), Literal(1)),
        nodes.AnyOf(Field(("lines",)), VariantCompare("==", w, Literal(2))),
    ))  # fmt: skip
    assert bind(parse("v.a IS NOT NULL"), SCHEMA) == VariantPresent(VariantField(Field(("v",)), ("a",)))
    assert bind(parse("jsonpath('$..y')"), SCHEMA) == nodes.JsonPath("$..y")


@pytest.mark.parametrize(
    ("symbol", "left", "right", "value"),
    [
        ("==", 1, 1.0, True), ("==", 1, True, False), ("==", [1, {"a": 2}], [1.0, {"a": 2.0}], True),
        ("==", [True], [1], False), ("==", None, NOTHING, False), ("==", NOTHING, NOTHING, True),
        ("!=", NOTHING, 1, True), ("<=", NOTHING, NOTHING, True), ("<", "a", "b", True), ("<", "a", 1, False),
        ("<", False, True, False), ("<=", False, False, True), (">=", [1], [1], True), (">", {}, {}, False),
        ("==", 2**53 + 1, 2**53, False), ("==", 2**53 + 1, float(2**53), True), ("<", 10**400, 1, False),
    ],
)  # fmt: skip
def test_json_values_compare_as_rfc_9535_has_it(symbol: str, left: Any, right: Any, value: bool) -> None:
    assert compare_json(symbol, left, right) is value


def test_an_integer_among_alternatives_that_are_doubles_is_a_double() -> None:
    numbers = schema("n BIGINT, d DOUBLE")
    for text in ("CASE WHEN d > 0.0 THEN d ELSE n END", "coalesce(d, n)"):
        value = evaluate(bind(parse(text), numbers), Scope({"n": 2**53 + 1, "d": None}))
        assert repr(value) == "9007199254740992.0"

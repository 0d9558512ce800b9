"""VARIANT in the reference, and the same on Spark."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.errors import UnsupportedOnSpark
from penstock.expr import nodes
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.nodes import Field, Literal
from penstock.expr.text import parse
from penstock.expr.types import type_of
from penstock.expr.variant import bind
from penstock.expr.variant_nodes import VariantCompare, VariantField, VariantNodes, VariantPresent
from penstock.expr.variant_values import NOTHING, compare_json
from penstock.schema import schema
from penstock.spark.expressions import Context, lower
from tests.expr.trees import json_values

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


ON_SPARK = [
    "v IS NULL", "v.a IS NOT NULL", "v = 1", "v != 'a'", "v.a = NULL", "v.a != TRUE", "v.a <= FALSE", "v.a < 1",
    "v.a >= 'a'", "v.a[0] > 0.5", "v.a < v.b", "v.a = v.b", "v.a != v.b", "v.a >= v.b", "v = n", "v.a > s", "n <= v",
    "v.a = 9007199254740993", "v[-1] = 1", "v['x''\"'] = 'a'", "v.`x.y` IS NOT NULL", "v IN (1, 'a', NULL)",
    "any(v, item = 1)", "any(v.a, item.b != v.b)", "any(v, any(item, item IS NOT NULL))", "any(items, item = NULL)",
    "any(items, item.a = n)", "any(items, item = 'a')", "any(lines, item.w.a >= item.w.b)",
    "NOT (v.a = 1 OR v.b = 'a')", "lookup(v, 1, 'one', 'a', 'letter', 'other')", "select(v, item > 0)",
    "jsonpath('$.v[*].a')", "jsonpath('$.v[1:]')", "jsonpath('$.v[::-2]')", "jsonpath('$.v[?@.a == $.v.b]')",
    "jsonpath('$.v.a != $.v.b')", "jsonpath('length($.v) > 1')", "jsonpath('count($.v.*) == 2')",
    "jsonpath('value($.v.*) == 1')", "jsonpath('$.v[?match(@, \"a.?b?\")]')", "jsonpath('$.v[?search(@.a, \"b\")]')",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -2, 1.0, 0.5, 1e300, 2**53, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1,
    "", "a", "ab", "b", "1", "true", "𝄞", [], [1], [1.0], ["a", None], {}, {"a": 1}, {"a": 1, "b": [2]},
]  # fmt: skip


def made_bodies() -> list[dict[str, Any]]:
    """All pairs of the values above, and what Hypothesis makes."""
    numbers, texts = itertools.cycle([None, 1, -2]), itertools.cycle(["a", "1", None, "b"])
    made: list[Any] = [{"a": left, "b": right} for left in VALUES for right in VALUES]
    made += [[one, 1, one] for one in VALUES]

    @settings(max_examples=100, phases=[Phase.generate], derandomize=True)
    @given(json_values.filter(lambda value: value is not None))
    def collect(value: Any) -> None:
        made.append(value)

    collect()
    return [
        {"v": value, "n": next(numbers), "s": next(texts), "items": [None, value], "lines": [{"w": value}, {"w": None}]}
        for value in made
    ]


def test_spark_agrees_with_the_reference(spark: SparkSession) -> None:
    found = made_bodies()
    asked = [(text, strict) for strict in (False, True) for text in (ON_SPARK[:22] if strict else ON_SPARK)]
    trees = [bind(parse(text), SCHEMA) for text, _ in asked]
    columns = []
    for (_, strict), tree in zip(asked, trees, strict=True):
        column = lower(tree, Context(F.col("body"), SCHEMA, F.lit(None), strict=strict))
        columns.append(F.to_json(column) if isinstance(tree, VariantNodes) else column)
    answers = _documents(spark, found).select(F.array(*(F.to_json(F.struct(c.alias("x"))) for c in columns))).collect()
    wrong = []
    for body, (row,) in zip(found, answers, strict=True):
        for (text, strict), tree, answer in zip(asked, trees, row, strict=True):
            expected, value = evaluate(tree, Scope(body, strict=strict)), json.loads(answer).get("x")
            value = json.loads(value) if isinstance(tree, VariantNodes) else value
            if not compare_json("==", value, expected):
                wrong.append((text, strict, body, value, expected))
    assert wrong == []


def _documents(spark: SparkSession, found: list[dict[str, Any]]) -> Any:
    def text(value: Any) -> str | None:
        return None if value is None else json.dumps(value)

    rows = [
        (text(row["v"]), row["n"], row["s"], list(map(text, row["items"])), [text(line["w"]) for line in row["lines"]])
        for row in found
    ]
    data = spark.createDataFrame(rows, "v STRING, n BIGINT, s STRING, items ARRAY<STRING>, lines ARRAY<STRING>")
    return data.coalesce(1).select(
        F.struct(
            F.parse_json("v").alias("v"), "n", "s",
            F.transform("items", F.parse_json).alias("items"),
            F.transform("lines", lambda line: F.struct(F.parse_json(line).alias("w"))).alias("lines"),
        ).alias("body")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("jsonpath('$.v..y')", "UnsupportedOnSpark: JSONPath on Spark has no descendant segment ..\n"
                               "  fix  name the fields on the way, or use * for one level"),
        ("jsonpath('$.v[?match(@.a, $.v.p)]')",
         "UnsupportedOnSpark: JSONPath match() on Spark takes its pattern from the query, not from the message\n"
         "  fix  write the pattern as a text in quotes"),
        ("jsonpath('$..y')", "UnsupportedOnSpark: the JSONPath $..y uses descendant segment .."),
    ],
)  # fmt: skip
def test_what_spark_cannot_do_is_refused_by_name(spark: SparkSession, text: str, error: str) -> None:
    with pytest.raises(UnsupportedOnSpark) as caught:
        lower(parse(text), Context(F.col("body"), SCHEMA, F.lit(None)))
    assert str(caught.value).startswith(error)

"""The JSONPath Compliance Test Suite of RFC 9535: https://github.com/jsonpath-standard/jsonpath-compliance-test-suite"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from penstock.errors import BadExpression, UnsupportedOnSpark
from penstock.expr import nodes
from penstock.expr.jsonpath import find, predicate
from penstock.expr.query import read_query
from penstock.expr.variant import rebuild
from penstock.expr.variant_nodes import VariantField
from penstock.schema import schema
from penstock.spark.expressions import Context, lower
from tests.suites import suite

CASES: list[dict[str, Any]] = json.loads((suite("jsonpath") / "cts.json").read_text())["tests"]
VALID = [case for case in CASES if not case.get("invalid_selector")]
INVALID = [case for case in CASES if case.get("invalid_selector")]
VALUE = nodes.Field(("value",))

REFUSED_ON_SPARK = {
    "JSONPath on Spark has no descendant segment ..": 17,
    "JSONPath match() on Spark takes its pattern from the query, not from the message": 2,
    "JSONPath search() on Spark takes its pattern from the query, not from the message": 2,
}
NOT_FOR_TYPED_FIELDS = {
    "slice selector": 62,
    "function search()": 29,
    "function match()": 21,
    "function length()": 16,
    "descendant segment ..": 14,
    "function count()": 11,
    "function value()": 2,
}


def is_expected(case: dict[str, Any], found: list[Any]) -> bool:
    expected = case["results"] if "results" in case else [case["result"]]
    return json.dumps(found, sort_keys=True) in (json.dumps(one, sort_keys=True) for one in expected)


def test_the_suite_is_the_one_we_know() -> None:
    assert (len(VALID), len(INVALID)) == (456, 247)


@pytest.mark.parametrize("case", VALID, ids=lambda case: case["name"])
def test_a_valid_selector_finds_what_the_suite_expects(case: dict[str, Any]) -> None:
    assert is_expected(case, find(case["selector"], case["document"]))


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["name"])
def test_an_invalid_selector_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(BadExpression):
        find(case["selector"], None)


def test_selectors_beyond_typed_fields_are_refused_by_the_name_of_the_feature() -> None:
    conditions = [predicate(case["selector"]) for case in VALID]
    refused = Counter(tree.unsupported for tree in conditions if isinstance(tree, nodes.JsonPath))
    assert refused == NOT_FOR_TYPED_FIELDS


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Each selector runs on a single document: compiling it to Java would take most of the time."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.unset(name)


def test_spark_finds_what_the_suite_expects_or_refuses_by_name(interpreted: SparkSession) -> None:
    context = Context(F.col("body"), schema("value VARIANT"), F.lit(None))
    questions: dict[tuple[nodes.Expr, str], list[dict[str, Any]]] = {}
    for case in VALID:
        question = (_rooted(read_query(case["selector"])), json.dumps(case["document"]))
        questions.setdefault(question, []).append(case)

    columns: dict[nodes.Expr, Column] = {}
    refused: Counter[str] = Counter()
    for (tree, _), cases in questions.items():
        try:
            columns[tree] = columns[tree] if tree in columns else F.to_json(lower(tree, context))
        except UnsupportedOnSpark as reason:
            refused[reason.what] += len(cases)
    assert refused == REFUSED_ON_SPARK
    print(f"\nJSONPath on Spark: {len(VALID) - refused.total()} of {len(VALID)} valid selectors; {dict(refused)}")

    asked = [question for question in questions if question[0] in columns]
    found = dict(zip(asked, map(json.loads, _answers(interpreted, asked, columns)), strict=True))
    assert [case["name"] for question in asked for case in questions[question]
            if not is_expected(case, found[question])] == []  # fmt: skip


def _answers(spark: SparkSession, asked: list[tuple[nodes.Expr, str]], columns: dict[nodes.Expr, Column]) -> list[str]:
    """One job: a row for each document, where only its own selector is evaluated."""
    rows = [(number, document) for number, (_, document) in enumerate(asked)]
    documents = spark.createDataFrame(rows, "number INT, document STRING").coalesce(1)
    found = F.when(F.col("number") == 0, columns[asked[0][0]])
    for number, (tree, _) in enumerate(asked[1:], 1):
        found = found.when(F.col("number") == number, columns[tree])
    bodies = documents.select("number", F.struct(F.parse_json("document").alias("value")).alias("body"))
    return [row.found for row in bodies.select(found.alias("found")).collect()]


def _rooted(tree: nodes.Expr) -> nodes.Expr:
    """The query over the document in the column `value`."""
    if isinstance(tree, VariantField):
        return tree if tree.column.root == nodes.ITEM else VariantField(VALUE, tree.path)
    return rebuild(tree, _rooted)

"""Conditions over a batch answer as `evaluate` does for each body."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.expr import nodes
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.nodes import Case, Expr, Field, Literal
from penstock.expr.text import parse
from penstock.expr.variant import bind
from penstock.expr.vectorized import evaluate_batch, is_vectorized
from penstock.formats.arrow import arrow_type
from penstock.schema import schema

BODY = schema(
    "n BIGINT, m BIGINT, d DOUBLE, e DOUBLE, s STRING, t STRING, b BOOLEAN, tags ARRAY<STRING>, v VARIANT,"
    "lines ARRAY<STRUCT<n: BIGINT, s: STRING, tags: ARRAY<STRING>>>,"
    "at STRUCT<n: BIGINT, s: STRING, deep: STRUCT<d: DOUBLE, b: BOOLEAN>>, counts MAP<STRING, BIGINT>"
)
NUMBERS = [Field((name,)) for name in "nmde"] + [Field(("at", "n")), Field(("at", "deep", "d"))]
TEXTS = [Field(("s",)), Field(("t",)), Field(("at", "s"))]
FLAGS = [Field(("b",)), Field(("at", "deep", "b"))]
ANYTHING = [*NUMBERS, *TEXTS, *FLAGS, Field(("tags",)), Field(("at",)), Field(("at", "deep")), Field(("counts",))]

_near = [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 1, -1]
integers = st.sampled_from(_near) | st.integers(-3, 3)
doubles = st.sampled_from([0.0, -0.0, 0.1, 1.0, -1.0, 2.0**53, 2.0**63, 1e308, 5e-324]) | st.floats(-3, 3)
texts = st.sampled_from(["", "a", "b", "ab", "é", "\U0001f600", "\uffff", "a\x00", "Z"])
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


def _literals(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Expr]:
    return st.builds(Literal, values)


def _both_ways(left: Any, right: Any, symbols: Any = operators) -> st.SearchStrategy[Expr]:
    return st.builds(nodes.Compare, symbols, left, right) | st.builds(nodes.Compare, symbols, right, left)


number, text, flag = st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.sampled_from(FLAGS)
equality = st.sampled_from(["==", "!="])
tests = st.one_of(
    flag,
    _both_ways(number, number | _literals(integers | doubles)),
    _both_ways(text, text | _literals(texts)),
    _both_ways(flag, flag | _literals(st.booleans()), equality),
    _both_ways(number | text, st.just(Literal(None)), equality),
    st.builds(nodes.Present, st.sampled_from(ANYTHING)),
    st.builds(nodes.In, st.just(Field(("at", "n"))), st.lists(integers, max_size=3).map(tuple)),
    st.builds(nodes.In, st.just(Field(("d",))), st.lists(doubles, max_size=3).map(tuple)),
    st.builds(nodes.In, text, st.lists(texts, max_size=3).map(tuple)),
    st.builds(lambda name, value, part: nodes.Call(name, (value, part)),
              st.sampled_from(["contains", "starts_with", "ends_with"]), text, _literals(texts)),
)  # fmt: skip
_item = Field((), nodes.ITEM)
_line_number, _line_text = Field(("n",), nodes.ITEM), Field(("s",), nodes.ITEM)
about_tags = st.one_of(_both_ways(st.just(_item), text | _literals(texts)), tests, st.just(nodes.Present(_item)))
about_lines = st.one_of(
    _both_ways(st.just(_line_number), number | _literals(integers)),
    _both_ways(st.just(_line_text), text | _literals(texts)),
    st.builds(nodes.Present, st.sampled_from([_item, _line_number, Field(("tags",), nodes.ITEM)])),
    st.builds(nodes.Not, _both_ways(st.just(_line_number), number)),
)
elements = st.one_of(
    st.builds(nodes.AnyOf, st.just(Field(("tags",))), about_tags),
    st.builds(nodes.AnyOf, st.just(Field(("lines",))), about_lines),
    st.builds(lambda combined, terms: nodes.AnyOf(Field(("lines",)), combined(terms)),
              st.sampled_from([nodes.And, nodes.Or]), st.tuples(about_lines, tests)),
)  # fmt: skip
conditions = st.recursive(
    tests | elements,
    lambda inner: st.one_of(
        st.builds(nodes.And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(nodes.Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(nodes.Not, inner),
    ),
    max_leaves=6,
)
choices = st.lists(conditions, min_size=1, max_size=3).map(
    lambda cases: Case(tuple((test, Literal(number)) for number, test in enumerate(cases)), Literal(len(cases)))
)


def _maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({name: st.none() | value for name, value in fields.items()})


bodies = _maybe(
    n=integers, m=integers, d=doubles, e=doubles, s=texts, t=texts, b=st.booleans(),
    tags=st.lists(st.none() | texts, max_size=3), v=st.none(), counts=st.just({"a": 1}),
    lines=st.lists(st.none() | _maybe(n=integers, s=texts, tags=st.lists(texts, max_size=1)), max_size=3),
    at=_maybe(n=integers, s=texts, deep=_maybe(d=doubles, b=st.booleans())),
)  # fmt: skip


def batch(rows: list[dict[str, Any]]) -> pa.StructArray:
    return pa.array([row | {"counts": list((row["counts"] or {}).items()) or None} for row in rows], arrow_type(BODY))


@settings(max_examples=300)
@given(conditions | choices, st.lists(bodies, min_size=1, max_size=5))
def test_a_batch_answers_as_each_of_its_bodies(condition: Expr, rows: list[dict[str, Any]]) -> None:
    bound = bind(condition, BODY)
    assert is_vectorized(bound, BODY)
    one_by_one = [evaluate(bound, Scope(row)) for row in rows]
    expected = one_by_one if isinstance(bound, Case) else [bool(value) for value in one_by_one]
    found = evaluate_batch(bound, batch(rows))
    assert found.to_pylist() == expected
    assert found.type == (pa.int64() if isinstance(bound, Case) else pa.bool_())


def test_a_slice_of_a_batch_and_a_body_that_is_missing_answer_too() -> None:
    rows = pa.array([{"n": 1}, None, {"n": 3}, {"n": 4}], arrow_type(schema("n BIGINT")))
    assert evaluate_batch(parse("n > 2"), rows.slice(1, 2)).to_pylist() == [False, True]
    assert evaluate_batch(parse("n > 2"), rows.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    "condition",
    [
        "n + 1 > 2", "upper(s) = 'A'", "tags[0] = 'a'", "any(tags, any(tags, item = 'a'))", "v.x = 1", "v IS NULL",
        "v.x IS NULL", "any(lines, any(item.tags, item = 'a'))", "any(lines, upper(item.s) = 'A')",
        "header.region = 'EU'", "counts.a = 1", "n IN (1, 2.5)", "n IN (1.5)", "contains(s, t)", "1 = 1",
        "CASE WHEN b THEN b ELSE b END", "coalesce(b, true)", "n > 1 AND n + 1 > 2", "NOT matches(s, 'a')",
        "b IN (true)", "CASE WHEN n > 1 THEN true ELSE false END", "NOT CASE WHEN n > 1 THEN true ELSE false END",
        "CASE WHEN n > 1 THEN null ELSE true END",
    ],
)  # fmt: skip
def test_everything_else_is_left_to_others(condition: str) -> None:
    assert not is_vectorized(bind(parse(condition), BODY), BODY)

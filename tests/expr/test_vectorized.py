"""Expressions over a batch say what `evaluate` says of each body."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.expr import nodes
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.nodes import Call, Case, Expr, Field, Literal, Lookup
from penstock.expr.text import parse
from penstock.expr.types import NULL, type_of
from penstock.expr.variant import bind
from penstock.expr.vectorized import decide_batch, evaluate_batch, is_vectorized
from penstock.formats.arrow import arrow_type
from penstock.schema import BOOLEAN, DOUBLE, Type, schema
from tests.expr.regular import PATTERNS

BODY = schema(
    "n BIGINT, m BIGINT, d DOUBLE, e DOUBLE, s STRING, t STRING, b BOOLEAN, tags ARRAY<STRING>, v VARIANT,"
    "lines ARRAY<STRUCT<n: BIGINT, s: STRING, tags: ARRAY<STRING>>>,"
    "at STRUCT<n: BIGINT, s: STRING, deep: STRUCT<d: DOUBLE, b: BOOLEAN>>, counts MAP<STRING, BIGINT>"
)
_near = [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62, 3037000500, 0, 1, -1]
integers = st.sampled_from(_near) | st.integers(-3, 3)
doubles = st.one_of(
    st.sampled_from([0.0, -0.0, 0.1, 1.0, -1.0, 2.675, 0.125, -2.5, 2.0**53, 2.0**63, -(2.0**63), 1e308, 5e-324]),
    st.floats(-3, 3), st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
texts = st.sampled_from(["", "a", "b", "ab", " a ", "a,b,,", "é", "ß", "ŉA", "\U0001f600x", "\uffff", "a\x00", "Z",
                         "12", "-7", "+3", "1.5", "1e3", ".5", "9" * 18, "9" * 19, "007",
                         "nan", "inf", "0x1"])  # fmt: skip
Exprs = st.SearchStrategy[Expr]


def _fields(*paths: tuple[str | int, ...]) -> Exprs:
    return st.sampled_from([Field(path) for path in paths])


def _called(name: str, *arguments: Exprs) -> Exprs:
    return st.tuples(*arguments).map(lambda chosen: Call(name, chosen))


def _literals(values: st.SearchStrategy[Any]) -> Exprs:
    return st.builds(Literal, values)


def _cases(tests: Exprs, values: Exprs) -> Exprs:
    branches = st.lists(st.tuples(tests, values), min_size=1, max_size=2).map(tuple)
    return st.builds(Case, branches, values | st.just(Literal(None)))


def _lookups(keyed: Exprs, keys: st.SearchStrategy[Any], values: st.SearchStrategy[Any], others: Exprs) -> Exprs:
    entries = st.lists(st.tuples(keys, st.none() | values), min_size=1, max_size=3).map(tuple)
    return st.builds(Lookup, keyed, entries, others | st.just(Literal(None)))


digits = _literals(st.integers(0, 3) | st.sampled_from([15, 20]))
small = _literals(st.integers(0, 3))
patterns = _literals(PATTERNS)
parts = _literals(st.sampled_from(["a", ",", "é", "ab"]))
plain_integers = _fields(("n",), ("m",), ("at", "n"), ("lines", 0, "n"), ("lines", -1, "n"), ("counts", "a"))
plain_doubles = _fields(("d",), ("e",), ("at", "deep", "d"))
plain_texts = _fields(("s",), ("t",), ("at", "s"), ("tags", 0), ("tags", -2), ("lines", 1, "s"))
flags = _fields(("b",), ("at", "deep", "b"))
whole = st.deferred(lambda: plain_integers | _literals(integers) | _wholes)
number = st.deferred(lambda: whole | plain_doubles | _literals(doubles) | _numbers)
text = st.deferred(lambda: plain_texts | _literals(texts) | _texts)
array = st.deferred(lambda: _fields(("tags",), ("lines", 0, "tags")) | _arrays)
truth = st.deferred(lambda: flags | _tests | _combined)
item = Field((), nodes.ITEM)
about_tags = st.deferred(lambda: _compared(st.just(item) | _called("upper", st.just(item)), text) | truth)
about_lines = st.deferred(lambda: st.one_of(
    _compared(st.just(Field(("n",), nodes.ITEM)), number), _compared(st.just(Field(("s",), nodes.ITEM)), text),
    st.builds(nodes.Present, st.sampled_from([item, Field(("n",), nodes.ITEM), Field(("tags",), nodes.ITEM)])),
    st.builds(nodes.AnyOf, st.just(Field(("tags",), nodes.ITEM)), _compared(st.just(item), text)), truth,
))  # fmt: skip


def _compared(left: Exprs, right: Exprs, symbols: tuple[str, ...] = ("==", "!=", "<", "<=", ">", ">=")) -> Exprs:
    symbol = st.sampled_from(symbols)
    return st.builds(nodes.Compare, symbol, left, right) | st.builds(nodes.Compare, symbol, right, left)


_wholes = st.one_of(
    *(_called(name, whole, whole) for name in ("add", "subtract", "multiply", "modulo")), _called("absolute", whole),
    _called("length", text), _called("size", array), _called("to_integer", number | text | flags),
    _called("coalesce", whole, whole), _cases(truth, whole), _lookups(text, texts, integers, whole),
)  # fmt: skip
_numbers = st.one_of(
    *(_called(name, number, number) for name in ("add", "subtract", "multiply", "divide", "coalesce")),
    _called("absolute", number), _called("round", number, digits), _called("to_double", number | text | flags),
    _cases(truth, number), _lookups(number, integers | doubles, integers | doubles, number),
)  # fmt: skip
_texts = st.one_of(
    _called("concat", text, text), *(_called(name, text) for name in ("upper", "lower", "trim")),
    _called("substring", text, small, small), _called("replace", text, parts, text), _called("join", array, parts),
    _called("extract", text, _literals(st.sampled_from(["(a)b", "x([0-9]+)|a(b)?"]))), _cases(truth, text),
    _called("to_string", whole | text | truth), _called("to_string", number, digits),
    _called("coalesce", text, text), _lookups(whole, integers, texts, text),
)  # fmt: skip
_arrays = _called("split", text, parts) | st.builds(nodes.Select, _fields(("tags",)), about_tags)
_tests = st.one_of(
    _compared(number, number), _compared(text, text), _compared(flags, flags | _literals(st.booleans()), ("==", "!=")),
    *(_called(name, text, text) for name in ("contains", "starts_with", "ends_with")),
    *(_called(name, text, patterns) for name in ("matches", "search")),
    st.builds(nodes.Present, number | text | array | _fields(("at",), ("at", "deep"), ("counts",), ("lines", 0))),
    st.builds(nodes.In, number, st.lists(integers | doubles, max_size=3).map(tuple)),
    st.builds(nodes.In, text, st.lists(texts, max_size=3).map(tuple)),
    st.builds(nodes.In, flags, st.lists(st.booleans(), max_size=2).map(tuple)),
    st.builds(nodes.AnyOf, array, about_tags), st.builds(nodes.AnyOf, _fields(("lines",)), about_lines),
    _called("coalesce", flags, _literals(st.booleans())), _cases(flags, flags),
)  # fmt: skip
_combined = st.one_of(
    st.builds(nodes.And, st.lists(truth, min_size=1, max_size=3).map(tuple)),
    st.builds(nodes.Or, st.lists(truth, min_size=1, max_size=3).map(tuple)), st.builds(nodes.Not, truth),
)  # fmt: skip
anything = st.one_of(whole, number, text, array, truth, st.builds(nodes.Select, _fields(("lines",)), about_lines))


def _maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({name: st.none() | value for name, value in fields.items()})


bodies = _maybe(
    n=integers, m=integers, d=doubles, e=doubles, s=texts, t=texts, b=st.booleans(),
    tags=st.lists(st.none() | texts, max_size=3), v=st.none(), counts=st.just({"a": 1}),
    lines=st.lists(st.none() | _maybe(n=integers, s=texts, tags=st.lists(texts, max_size=1)), max_size=3),
    at=_maybe(n=integers, s=texts, deep=_maybe(d=doubles, b=st.booleans())),
)  # fmt: skip
many = st.lists(bodies, min_size=1, max_size=5)


def batch(rows: list[dict[str, Any]]) -> pa.StructArray:
    return pa.array([row | {"counts": list((row["counts"] or {}).items()) or None} for row in rows], arrow_type(BODY))


def typed(expression: Expr) -> tuple[Expr, Type] | None:
    """The expression as a plan has it, and its type; None if no plan would take it."""
    try:
        kind = type_of(expression, BODY)
    except Exception:
        return None
    return None if kind == NULL else (bind(expression, BODY), kind)


def shown(value: Any) -> str:
    """As text, which tells 1 from 1.0 and 0.0 from -0.0, whatever the order of fields is."""
    if isinstance(value, dict):
        return str({name: shown(value[name]) for name in sorted(value)})
    return str(list(map(shown, value))) if isinstance(value, list) else repr(value)


def one_by_one(bound: Expr, kind: Type, rows: list[dict[str, Any]]) -> list[str]:
    values = [evaluate(bound, Scope(row)) for row in rows]
    return [shown(float(value) if kind == DOUBLE and value is not None else value) for value in values]


@settings(max_examples=1000)
@given(anything, many)
def test_values_of_a_batch_are_those_of_each_body(expression: Expr, rows: list[dict[str, Any]]) -> None:
    known = typed(expression)
    if known is None:
        return
    bound, kind = known
    assert is_vectorized(bound, BODY)
    found = evaluate_batch(bound, batch(rows), arrow_type(kind))
    assert found.type == arrow_type(kind)
    assert [shown(value) for value in found.to_pylist()] == one_by_one(bound, kind, rows)


@settings(max_examples=300)
@given(truth, many)
def test_a_condition_is_decided_as_for_each_body(condition: Expr, rows: list[dict[str, Any]]) -> None:
    known = typed(condition)
    if known is None:
        return
    bound, _ = known
    assert decide_batch(bound, batch(rows)).to_pylist() == [bool(evaluate(bound, Scope(row))) for row in rows]


@given(number, many, st.integers(0, 2))
def test_a_slice_of_a_batch_has_its_own_values(expression: Expr, rows: list[dict[str, Any]], first: int) -> None:
    known = typed(expression)
    if known is not None:
        bound, kind = known
        found = evaluate_batch(bound, batch(rows).slice(first), arrow_type(kind))
        assert [shown(value) for value in found.to_pylist()] == one_by_one(bound, kind, rows[first:])


def test_a_literal_is_itself_whatever_equal_one_came_before() -> None:
    values = [0.0, -0.0, 0, False, 1, True, 1.0, Decimal("1.0"), Decimal("1.00")]
    for value in [*values, *reversed(values)]:
        (found,) = evaluate_batch(Literal(value), pa.array([{"n": 1}]), pa.scalar(value).type).to_pylist()
        assert repr(found) == repr(value)


@pytest.mark.parametrize("place", [5, -5, 10**30, -(10**30)])
def test_an_element_at_a_place_that_no_list_has_is_missing(place: int) -> None:
    bodies = pa.array([{"l": [1, 2]}, {"l": []}, {"l": None}])
    assert evaluate_batch(Field(("l", place)), bodies, pa.int64()).to_pylist() == [None] * 3


def test_a_body_that_is_missing_and_no_bodies_at_all_answer_too() -> None:
    rows = pa.array([{"n": 1}, None, {"n": 3}, {"n": 4}], arrow_type(schema("n BIGINT")))
    assert decide_batch(parse("n > 2"), rows.slice(1, 2)).to_pylist() == [False, True]
    assert decide_batch(parse("n + 1 > 2"), rows.slice(0, 0)).to_pylist() == []
    assert decide_batch(parse("1 = 1"), rows.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    "expression",
    [
        "v.x = 1", "v IS NULL", "v.x IS NULL", "header.region = 'EU'", "any(lines, header.region = item.s)",
        "upper(header.region)", "CASE WHEN v.x = 1 THEN n ELSE 2 END", "n > 1 AND v.x = 2",
    ],
)  # fmt: skip
def test_what_is_not_in_typed_columns_is_left_to_others(expression: str) -> None:
    assert not is_vectorized(bind(parse(expression), BODY), BODY)


def test_a_python_function_is_left_to_others() -> None:
    function: Callable[..., Any] = len
    assert not is_vectorized(nodes.Function(function, BOOLEAN, (Field(("s",)),), "builtins:len"), BODY)

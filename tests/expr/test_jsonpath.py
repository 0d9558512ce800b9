from __future__ import annotations

import json
from typing import Any

import jsonpath_rfc9535
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.jsonpath import find, holds, jsonpath, predicate
from penstock.expr.query import read_condition, read_query
from penstock.expr.text import to_text
from penstock.expr.variant import bind
from penstock.schema import schema
from tests.expr.trees import json_values


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("@.OTOTALPRICE < 100000 && @.status == 'P'", "OTOTALPRICE < 100000 AND status = 'P'"),
        ("$.OTOTALPRICE < 100000", "OTOTALPRICE < 100000"),
        ("$['a']['x y'][0]", "a.`x y`[0] IS NOT NULL"),
        ("@.a || !(@.b)", "a IS NOT NULL OR b IS NULL"),
        ("$.lines[?@.price > 5]", "any(lines, item.price > 5)"),
        ("$.lines[?@.price > $.limit].sku", "any(lines, item.price > limit AND item.sku IS NOT NULL)"),
        ("$.lines[?@.parts[?@.id == 1]]", "any(lines, any(item.parts, item.id = 1))"),
        ("$.lines[*]", "any(lines, TRUE)"),
        ("$.lines[*].sku", "any(lines, item.sku IS NOT NULL)"),
        ("$['a', 'b']", "a IS NOT NULL OR b IS NOT NULL"),
        ("@.a != 1", "NOT (a = 1)"),
        ("@.a == @.b", "a = b OR a IS NULL AND b IS NULL"),
        ("@.a < @.b", "a < b"),
        ("@.a == null", "a = NULL"),
        ("@.a <= true", "a = TRUE"),
        ("@.a < null", "FALSE"),
        ("1 == 1.0", "TRUE"),
    ],
)
def test_a_query_becomes_the_tree_of_the_other_front_ends(query: str, text: str) -> None:
    assert to_text(predicate(query)) == text
    assert repr(jsonpath(query)) == text


@pytest.mark.parametrize(
    ("query", "feature"),
    [
        ("$..a", "descendant segment .."),
        ("$.a[1:2]", "slice selector"),
        ("length(@.a) > 3", "function length()"),
        ("match(@.a, 'x.*')", "function match()"),
    ],
)
def test_what_typed_fields_cannot_answer_names_the_feature(query: str, feature: str) -> None:
    tree = predicate(query)
    assert isinstance(tree, nodes.JsonPath)
    assert (tree.query, tree.unsupported) == (query, feature)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("@.a <", "'@.a <' is not a JSONPath: unexpected end of expression\n  at   line 1, column 6\n"
                  "       @.a <\n            ^\n"
                  "  fix  write a query like $.lines[?@.price > 5] or a condition like @.price > 5"),
        ("$.a[", "'$.a[' is not a JSONPath: "),
        ("price > 5", "'price > 5' is not a JSONPath: "),
        ("@.a == foo(1)", "'@.a == foo(1)' is not a JSONPath: function 'foo' is not defined"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(query: str, error: str) -> None:
    with pytest.raises(BadExpression) as caught:
        jsonpath(query)
    assert str(caught.value).startswith(f"BadExpression: {error}")


def test_find_takes_queries_and_not_filters() -> None:
    assert find("$.a[?@ > 1]", {"a": [1, 2, 3]}) == [2, 3]
    with pytest.raises(BadExpression):
        find("@.a > 1", {})


def test_both_signs_are_the_document_in_a_bare_filter() -> None:
    assert holds("@.a == $.b && length($.c) == 2", {"a": 1, "b": 1.0, "c": "xy"})


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("@.n == null", True), ("@.n != null", False), ("@.n != 'x'", True), ("@.n == @.m", True),
        ("@.s != 'x'", False), ("@.n < 'x'", False), ("@.n", False), ("!@.n", True),
    ],
)  # fmt: skip
def test_on_typed_fields_null_is_missing(query: str, value: bool) -> None:
    body = schema("s STRING, n STRING, m STRING")
    assert evaluate(bind(predicate(query), body), Scope({"s": "x", "n": None})) is value


QUERIES = [
    "$", "$.a", "$[0]", "$[-1]", "$[*]", "$..*", "$..a", "$..[0]", "$[0,'a',0]", "$[1:]", "$[::-1]", "$[-2:5:2]",
    "$[?@.a]", "$[?@.a == 1]", "$[?@ == $[0]]", "$[?@.a != @.b]", "$[?@.a <= @.b]", "$[?!@.a || @.b > 'a']",
    "$[?length(@) > 1]", "$[?count(@.*) == 2]", "$[?value(@.*) == 1]", "$[?match(@, 'a.*')]", "$[?search(@.a, '[bc]')]",
]  # fmt: skip


@given(st.sampled_from(QUERIES), json_values)
def test_find_agrees_with_the_library(query: str, document: Any) -> None:
    document = json.loads(json.dumps(document, sort_keys=True))
    assert repr(find(query, document)) == repr([node.value for node in jsonpath_rfc9535.find(query, document)])


@pytest.mark.parametrize("name", ["日本語", "a日", "한글", "é", "\ud7ff", "\ue000", "x😀"])
def test_names_of_all_characters_need_no_quotes(name: str) -> None:
    assert find(f"$.{name}", {name: 1}) == [1]
    assert find(f"$..{name}", [{name: 1}]) == [1]
    assert find(f"$[?@.{name} == '本']", [{name: "本"}]) == [{name: "本"}]


def test_a_mistake_beside_such_names_is_shown_as_it_is_written() -> None:
    with pytest.raises(BadExpression) as caught:
        find("$.日本語 語", {})
    assert "found '語'" in caught.value.what
    assert "column 7" in str(caught.value.origin)


@pytest.mark.parametrize("text", [
    "$.a[?@.b < !'c']", "@.b == !@.c", "$[?!count(@.*) == 2]", "$[?@.a || !length(@.b) > 1]",
    "$[?!4]", "$[?!('a')]", "$[?@.a && !null]", "$[?!length(@.a)]", "$[?!value(@.a)]", "@.a || !4",
    f"$[?@ == {'9' * 5000}]", "$[?@ == 1e999]", "$" + "[?@.a" * 900 + "]" * 900,
])  # fmt: skip
def test_what_has_no_meaning_is_refused_although_the_library_takes_it(text: str) -> None:
    for read in (read_query, read_condition, predicate):
        with pytest.raises(BadExpression, match="is not a JSONPath"):
            read(text)

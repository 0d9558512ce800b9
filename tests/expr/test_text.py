from __future__ import annotations

import pytest
from hypothesis import given

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.columns import body, header, item, lookup, when
from penstock.expr.columns import expression as tree_of
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.text import parse, to_text
from tests.expr.trees import trees


@given(trees)
def test_text_reads_back_to_the_same_tree(tree: nodes.Expr) -> None:
    assert parse(to_text(tree)) == tree


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("OTOTALPRICE < 100000", body.OTOTALPRICE < 100_000),
        ("body.OTOTALPRICE < 100_000", body.OTOTALPRICE < 100_000),
        ("a == 1", body.a == 1),
        ("a <> 1.5e3", body.a != 1500.0),
        ("header.region = 'EU'", header.region == "EU"),
        ("header['x-y'] = \"it's\"", header["x-y"] == "it's"),
        ("lines[0].price > lines[-1].price", body.lines[0].price > body.lines[-1].price),
        ("body.body IS NULL", ~body.body.is_present()),
        ("`odd name`.`a``b` is not null", body["odd name"]["a`b"].is_present()),
        ("a IN (1, -2, 'x', NULL, TRUE)", body.a.is_in(1, -2, "x", None, True)),
        ("a NOT IN (1)", ~body.a.is_in(1)),
        ("a BETWEEN 1 AND 2", (body.a >= 1) & (body.a <= 2)),
        ("any(lines, item.price > 5)", body.lines.any(item.price > 5)),
        ("select(lines, item > 5)", body.lines.select(item > 5)),
        ("CASE WHEN a > 1 THEN 'x' WHEN b THEN 'y' ELSE 'z' END",
         when(body.a > 1, "x").when(body.b, "y").otherwise("z")),
        ("CASE a WHEN 1 THEN 'x' END", when(body.a == 1, "x")),
        ("lookup(a, 'P', 1, 'F', 2)", lookup(body.a, {"P": 1, "F": 2})),
        ("lookup(a, 'P', 1, 'F', 2, 3)", lookup(body.a, {"P": 1, "F": 2}, 3)),
        ("1 - 2 - a * 3", parse("(1 - 2) - (a * 3)")),
        ("-a", 0 - body.a),
        ("UPPER(name) = 'X'", parse("upper(name) = 'X'")),
    ],
)  # fmt: skip
def test_text_means_the_same_as_columns(text: str, column: object) -> None:
    assert parse(text) == tree_of(column)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("name LIKE 'x%'", "starts_with(name, 'x')"),
        ("name LIKE '%x'", "ends_with(name, 'x')"),
        ("name LIKE '%x%'", "contains(name, 'x')"),
        ("name LIKE 'x'", "name = 'x'"),
        ("name LIKE '%'", "name IS NOT NULL"),
        ("name NOT LIKE 'x%'", "NOT starts_with(name, 'x')"),
        ("a or b and not c", "a OR b AND NOT c"),
        ("(a or b) and c", "(a OR b) AND c"),
        ("not a = 1", "NOT (a = 1)"),
        ("a % 2 = 0", "a % 2 = 0"),
        ("modulo(a, 2)", "a % 2"),
        ("a - (b - c)", "a - (b - c)"),
        ("jsonpath('$.lines[?@.price > 5]')", "any(lines, item.price > 5)"),
        ("jsonpath('$..price')", "jsonpath('$..price')"),
        ("xpath_number('//price')", "xpath_number('//price')"),
        ("python('posixpath:join', 'STRING', a)", "python('posixpath:join', 'STRING', a)"),
    ],
)
def test_text_prints_in_one_form(text: str, same: str) -> None:
    assert to_text(parse(text)) == same


def message(text: str) -> str:
    with pytest.raises(BadExpression) as caught:
        parse(text)
    return str(caught.value)


def test_an_error_points_at_the_place() -> None:
    assert message("total > 1\n  AND upper(name") == (
        "BadExpression: expected ), found the end\n"
        "  at   line 2, column 17\n"
        "         AND upper(name\n"
        "                       ^"
    )


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("uper(a)", "there is no function 'uper'", "did you mean 'upper'? known: absolute,"),
        ("a = 1 = 2", "comparisons do not chain", "join two comparisons with AND"),
        ("a && b", "'&' has no meaning here", "write AND"),
        ("@.a > 1", "'@' has no meaning here", "write jsonpath('@...')"),
        ("a = 'x", "this quote is not closed", "end it with '"),
        ("end = 1", "expected a value, found end", "a field of that name is written `end`"),
        ("a b", "expected an operator or the end, found b", None),
        ("a IN (b)", "expected a number, a text, TRUE, FALSE or NULL, found b", None),
        ("a NOT b", "expected IN, BETWEEN or LIKE after NOT, found b", None),
        ("a LIKE 'x_y'", "LIKE 'x_y' is not one of 'x%', '%x', '%x%' and 'x'",
         "write it as a regular expression: matches(field, '...')"),
        ("a LIKE 5", "LIKE needs a text", None),
        ("a[1.5]", "an index is a whole number or a name in quotes", None),
        ("a.5", "expected an operator or the end, found .5", None),
        ("any(lines)", "any takes a collection and a condition", "write any(lines, item.price > 5)"),
        ("lookup(a, b, c)", "the pairs of lookup are literals", "use CASE WHEN ... THEN ... END for computed values"),
        ("xpath(a)", "xpath takes a path in quotes", "write xpath('//o:order', 'o', 'urn:orders')"),
        ("xpath('//o:a')", "'//o:a' is not an XPath: the namespace prefix 'o' is not declared", "declare it: names"),
        ("xpath('//a[')", "'//a[' is not an XPath: invalid expression", None),
        ("jsonpath('$.a[')", "'$.a[' is not a JSONPath: ", "write a query like $.lines[?@.price > 5] or a condition"),
        ("python('posixpath:jin', 'STRING')",
         "cannot import 'posixpath:jin': module 'posixpath' has no attribute 'jin'",
         "name a function of an importable module, as in 'package.module:function'"),
        ("python('.join:x', 'STRING')", "cannot import '.join:x': the 'package' argument is required",
         "name a function of an importable module, as in 'package.module:function'"),
        ("a > " + "9" * 5000, "a number of 5,000 digits", None),
        ("(" * 5000, "this is nested more than 40 deep", "name a part of it in a field of its own, with enrich"),
        ("NOT " * 5000, "this is nested more than 40 deep", "name a part of it in a field of its own, with enrich"),
        ("- " * 5000 + "a", "this is nested more than 40 deep", "name a part of it in a field of its own, with enrich"),
        ("upper(" * 5000, "this is nested more than 40 deep", "name a part of it in a field of its own, with enrich"),
        ("a" + " + a" * 5000, "this is a chain of more than 200 operators",
         "name a part of it in a field of its own, with enrich"),
        ("python('posixpath:join')", "python takes a function and its return type",
         "write python('module:function', 'STRING', ...)"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(text: str, what: str, fix: str | None) -> None:
    shown = message(text)
    assert shown.startswith(f"BadExpression: {what}")
    assert "\n  at   line 1, column " in shown
    assert f"\n  fix  {fix}" in shown if fix else "fix" not in shown


def test_long_chains_and_deep_nests_are_read_and_evaluated() -> None:
    sums = parse("(" * 39 + "1" + " + 1)" * 39 + " + 1" * 150)
    assert evaluate(sums, Scope({})) == 190
    assert parse(to_text(sums)) == sums
    assert evaluate(parse(" OR ".join(["a = 1"] * 5000)), Scope({"a": 1})) is True

from __future__ import annotations

import pytest

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.columns import body, call, condition, default, expression, function, header, item, lookup, when
from penstock.schema import BOOLEAN, STRING


def test_operators_make_trees() -> None:
    assert repr(body.a + 1 > 2 * body.b) == "a + 1 > 2 * b"
    assert repr((body.a == 1) & ~(body.b != 2) | body.c) == "a = 1 AND NOT (b != 2) OR c"
    assert repr(body.a & body.b & (body.c | body.d | body.e)) == "a AND b AND (c OR d OR e)"
    assert repr(body.lines.any(item.price / 2 <= header["limit"])) == "any(lines, item.price / 2 <= header.limit)"


def test_none_asks_for_a_missing_value() -> None:
    assert expression(body.a == None) == nodes.Not(nodes.Present(nodes.Field(("a",))))  # noqa: E711
    assert expression(body.a != None) == nodes.Present(nodes.Field(("a",)))  # noqa: E711


def test_a_field_may_have_any_name() -> None:
    assert expression(body["odd name"][0].is_) == nodes.Field(("odd name", 0, "is_"))


def test_when_default_lookup_and_function() -> None:
    assert repr(when(body.a > 1, "x").otherwise("y")) == "CASE WHEN a > 1 THEN 'x' ELSE 'y' END"
    assert repr(default(body.a, 0)) == "coalesce(a, 0)"
    assert repr(lookup(body.a, {"P": 1}, 2)) == "lookup(a, 'P', 1, 2)"
    assert expression(function(len, body.a)) == nodes.Function(len, STRING, (nodes.Field(("a",)),), "builtins:len")


def test_a_condition_is_a_column_text_or_a_function() -> None:
    assert condition("a > 1") == condition(body.a > 1)
    assert condition(bool) == nodes.Function(bool, BOOLEAN, (nodes.Field(()),), "builtins:bool")


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (lambda: bool(body.a > 1),
         "BadExpression: a condition on messages has no truth value in Python\n"
         "  at   tests/expr/test_columns.py:42  (lambda: bool(body.a > 1),\n"
         "  fix  instead of and, or, not, in and a < b < c: (a < b) & (b < c), | and ~, and is_in(...)"),
        (lambda: (body.a + 1).b,
         "BadExpression: 'b' is read from a computed value\n  fix  read fields from body, header or item"),
        (lambda: setattr(body, "a", 1),
         "BadExpression: cannot assign to 'a': messages are changed by translate and enrich"),
        (lambda: body.a == [1],
         "BadExpression: [1] is not an expression\n"
         "  fix  use body.field, a number, text, a boolean, a date, or when(...)"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(mistake: object, text: str) -> None:
    with pytest.raises(BadExpression) as caught:
        mistake()  # type: ignore[operator]
    assert str(caught.value) == text


def test_an_unknown_function_has_a_neighbour() -> None:
    with pytest.raises(BadExpression, match="there is no function 'lenght'\n  fix  did you mean 'length'"):
        call("lenght", body.a)

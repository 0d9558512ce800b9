from __future__ import annotations

import pytest

from penstock.errors import BadExpression, PenstockError
from penstock.expr.text import parse
from penstock.expr.types import require_boolean, type_of
from penstock.schema import schema

BODY = schema(
    "id BIGINT, total DOUBLE, name STRING, paid BOOLEAN, tags ARRAY<STRING>, "
    "lines ARRAY<STRUCT<price: DOUBLE, sku: STRING>>, extra MAP<STRING, BIGINT>, data VARIANT"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("id + 1", "BIGINT"),
        ("id + total", "DOUBLE"),
        ("id / 2", "DOUBLE"),
        ("header.x", "STRING"),
        ("extra.x", "BIGINT"),
        ("tags[0]", "STRING"),
        ("select(lines, item.price > 1)", "ARRAY<STRUCT<price: DOUBLE, sku: STRING>>"),
        ("any(lines, item.sku = name)", "BOOLEAN"),
        ("data.x.y", "VARIANT"),
        ("select(data.x, item.y > 1)", "ARRAY<VARIANT>"),
        ("data.x = NULL", "BOOLEAN"),
        ("name = NULL", "BOOLEAN"),
        ("data.x IN (1, 'a', NULL)", "BOOLEAN"),
        ("CASE WHEN paid THEN 1 ELSE 2.5 END", "DOUBLE"),
        ("lookup(name, 'P', 1)", "BIGINT"),
        ("coalesce(name, 'x')", "STRING"),
        ("xpath_strings('//a')", "ARRAY<STRING>"),
        ("jsonpath('$..a')", "BOOLEAN"),
    ],
)
def test_an_expression_has_a_type(text: str, kind: str) -> None:
    assert str(type_of(parse(text), BODY)) == kind


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nam = 'x'", "UnknownField: the body has no field 'nam'\n  fix  did you mean 'name'? known: data, extra, id,"),
        ("name > 5", "TypeMismatch: STRING > BIGINT cannot be compared\n"
                     "  fix  convert one side with to_integer(...) or to_string(...)"),
        ("name = 5.5", "TypeMismatch: STRING == DOUBLE cannot be compared\n"
                       "  fix  convert the text with to_double(...)"),
        ("name < NULL", "TypeMismatch: STRING < NULL cannot be compared\n  fix  ask is_present() or ~is_present()"),
        ("name IN (NULL)", "TypeMismatch: STRING == NULL cannot be compared\n"
                           "  fix  ask is_present() or ~is_present()"),
        ("paid < TRUE", "TypeMismatch: booleans have no order: BOOLEAN < BOOLEAN\n  fix  compare them with == or !="),
        ("tags = tags", "TypeMismatch: ARRAY<STRING> == ARRAY<STRING> cannot be compared"),
        ("data = tags", "TypeMismatch: VARIANT == ARRAY<STRING> cannot be compared"),
        ("name AND paid", "TypeMismatch: a condition is true or false, but name is STRING\n"
                          "  fix  compare it with something, or use is_present()"),
        ("any(name, item = 'x')", "TypeMismatch: STRING is not a collection\n  fix  any and select look into an ARRAY"),
        ("upper(id)", "TypeMismatch: argument 1 of upper is BIGINT, expected STRING"),
        ("upper(data.x)", "TypeMismatch: upper needs to know the type of its argument, which is VARIANT\n"
                         "  fix  declare the field's type in the schema"),
        ("upper(name, name)", "BadExpression: upper takes 1 arguments, not 2"),
        ("to_string(total)", "TypeMismatch: to_string of a DOUBLE needs the number of digits\n"
                             "  fix  write to_string(value, 2)"),
        ("substring(name, id, 1)", "TypeMismatch: argument 2 of substring is BIGINT, "
                                   "expected a literal integer that is not negative"),
        ("CASE WHEN paid THEN 1 ELSE 'x' END", "TypeMismatch: the alternatives have different types: BIGINT, STRING\n"
                                               "  fix  convert them with to_string, to_integer or to_double"),
        ("header.a.b", "BadExpression: a header is read by its name\n  fix  write header[\"name\"] or header.name"),
        (r"matches(name, '\d+')", "BadExpression: matches: '\\\\d+' is not a portable regular expression\n"
                                  r"  fix  use RFC 9485 syntax: [0-9] for \d; no look-around, no back-references"),
        ("search(name, '^a')", "BadExpression: search: '^a' has an anchor, ^ or $\n"
                               "  fix  matches covers the whole text; search finds a part"),
        ("extract(name, '[(]a')", "BadExpression: extract: '[(]a' has no group\n  fix  put ( ) around what to extract"),
        ("id < 9223372036854775808", "BadExpression: 9223372036854775808 does not fit in 64 bits\n"
                                     "  fix  write it as a DOUBLE, with a decimal point"),
        ("total < 1e999", "BadExpression: inf is not a number that a message can hold"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(text: str, error: str) -> None:
    with pytest.raises(PenstockError) as caught:
        type_of(parse(text), BODY)
    assert str(caught.value).startswith(error)


def test_a_condition_is_boolean() -> None:
    require_boolean(parse("paid"), BODY)
    with pytest.raises(PenstockError, match="but id \\+ 1 is BIGINT"):
        require_boolean(parse("id + 1"), BODY)


def test_an_unknown_function_is_refused_by_the_type_check_too() -> None:
    from penstock.expr.nodes import Call

    with pytest.raises(BadExpression, match="there is no function 'nope'"):
        type_of(Call("nope", ()), BODY)

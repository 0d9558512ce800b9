from __future__ import annotations

import pytest

from penstock import body, call, default, function, header, item, lookup, when
from penstock.errors import PenstockError
from penstock.message import Message
from tests.patterns.apps import app, start, through, why


def test_many_fields_become_many_others() -> None:
    route = start().translate(
        {
            "key": call("concat", body.name, "-", call("to_string", body.id)),
            "cost.net": body.price,
            "cost.gross": body.price * 1.5,
            "deep.er.city": body.who.home.city,
        }
    )
    given = {"id": 7, "name": "n", "price": 2.0, "who": {"home": {"city": "Rome"}}, "ok": True}
    assert through(route.to("x"), [given]).bodies("x") == [
        {"key": "n-7", "cost": {"net": 2.0, "gross": 3.0}, "deep": {"er": {"city": "Rome"}}}
    ]


def test_a_default_stands_in_for_a_missing_field() -> None:
    route = start().translate({"name": default(body.name, "nobody"), "n": default(body.id, 0)}).to("x")
    assert through(route, [{}, {"name": "", "id": 1}, {"name": None}]).bodies("x") == [
        {"name": "nobody", "n": 0}, {"name": "", "n": 1}, {"name": "nobody", "n": 0},
    ]  # fmt: skip


def test_a_value_mapping_has_an_otherwise() -> None:
    names = {"P": "pending", "F": "final"}
    always = lookup(body.name, names, otherwise=body.name)
    route = start().translate({"known": lookup(body.name, names), "always": always})
    assert through(route.to("x"), [{"name": "P"}, {"name": "Z"}, {}]).bodies("x") == [
        {"known": "pending", "always": "pending"}, {"always": "Z"}, {},
    ]  # fmt: skip


def test_conditions_are_tried_in_order() -> None:
    size = when(body.price < 10, "small").when(body.price < 100, "middle").otherwise("large")
    result = through(start().translate({"size": size}).to("x"), [{"price": 5}, {"price": 50}, {"price": 500}, {}])
    assert [body["size"] for body in result.bodies("x")] == ["small", "middle", "large", "large"]


def test_an_object_of_nothing_but_missing_fields_stays_an_object() -> None:
    assert through(start().translate({"who.name": body.name, "n": body.id}).to("x"), [{}]).bodies("x") == [{"who": {}}]


def test_headers_collections_and_functions_are_values_too() -> None:
    def shout(text: str) -> str:
        return text.upper() + "!"

    route = start().translate(
        {"region": header["region"], "many": body.lines.any(item.n > 1), "loud": function(shout, body.name)}
    )
    given = [Message("m", b'{"name": "hey", "lines": [{"n": 2}]}', headers={"region": "EU"}), {"lines": []}]
    result = through(route.to("x"), given)
    assert result.bodies("x") == [{"region": "EU", "many": True, "loud": "HEY!"}]
    reason = "AttributeError: 'NoneType' object has no attribute 'upper'"
    assert why(result) == [("translate", "FunctionFailed", reason)]


def test_the_id_headers_and_position_stay() -> None:
    given = Message("own", b'{"id": 1}', headers={"h": "v"}, attachments={"a": b"x"})
    (message,) = through(start().translate({"n": body.id}).to("x"), [given]).messages("x")
    assert (message.id, message.headers, message.attachments) == ("own", {"h": "v"}, {"a": b"x"})


@pytest.mark.parametrize(
    ("mappings", "text"),
    [
        ({}, "translate needs at least one field"),
        ({"a": 1, "a.b": 2}, "field 'a' is both a value and an object"),
        ({"a..b": 1}, "'a..b' is not a field name"),
    ],
)
def test_targets_that_make_no_sense_are_refused(mappings: dict[str, object], text: str) -> None:
    with pytest.raises(PenstockError, match=text):
        start().translate(mappings)


def test_a_field_that_is_never_there_is_refused() -> None:
    with pytest.raises(PenstockError, match="field 'a' is never there"):
        _ = app(start().translate({"a": None}).to("x")).plan

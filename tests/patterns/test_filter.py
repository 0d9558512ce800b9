from __future__ import annotations

from typing import Any

from penstock import body
from tests.patterns.apps import start, through, why


def test_filtered_messages_are_counted_by_step() -> None:
    route = start().filter(body.id > 1).filter(body.ok, name="is-ok").to("x")
    result = through(route, [{"id": 1}, {"id": 2, "ok": True}, {"id": 3, "ok": False}, {"id": 4}, {}])
    assert result.bodies("x") == [{"id": 2, "ok": True}]
    assert result.filtered == {"r.filter": 2, "r.is-ok": 2}


def test_filtered_messages_can_go_to_a_discard_channel() -> None:
    result = through(start().filter(body.id > 1, discard="no").to("x"), [{"id": 1}, {"id": 2}, {}])
    assert (result.bodies("x"), result.bodies("no")) == ([{"id": 2}], [{"id": 1}, {}])
    assert result.filtered == {}


def test_a_missing_field_kills_where_asked_and_is_not_discarded() -> None:
    route = start().filter(body.id > 1, discard="no", missing="dead").to("x")
    result = through(route, [{"id": 1}, {"id": 2}, {"id": None}])
    assert (result.bodies("x"), result.bodies("no")) == ([{"id": 2}], [{"id": 1}])
    reason = "the condition reads id, and a value is missing"
    assert why(result) == [("filter", "MissingField", reason)]


def test_not_of_a_missing_field_is_true() -> None:
    assert through(start().filter(~(body.id > 1)).to("x"), [{}, {"id": 5}]).bodies("x") == [{}]


def test_a_python_function_may_fail_for_one_message() -> None:
    def short(fields: dict[str, Any]) -> bool:
        return len(fields["name"]) < 3

    result = through(start().filter(short).to("x"), [{"name": "ab"}, {"name": "abc"}, {}])
    assert result.bodies("x") == [{"name": "ab"}]
    assert result.filtered == {"r.filter": 1}
    assert why(result) == [("filter", "FunctionFailed", "TypeError: object of type 'NoneType' has no len()")]

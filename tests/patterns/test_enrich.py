from __future__ import annotations

import pytest

from penstock import body, call, lookup_table
from penstock.errors import PenstockError
from tests.patterns.apps import app, start, through, why

ROWS = [{"key": "a", "city": "Rome", "rank": 1}, {"key": "b", "city": None, "rank": 2}]
CITIES = lookup_table(ROWS, key="key", name="cities")


def test_fields_are_added_or_replaced_and_the_rest_stays() -> None:
    route = start().enrich({"name": call("upper", body.name), "extra.kind": "order", "twice": body.id * 2}).to("x")
    assert through(route, [{"id": 2, "name": "n", "ok": True}]).bodies("x") == [
        {"id": 2, "ok": True, "name": "N", "extra": {"kind": "order"}, "twice": 4}
    ]


def test_all_mappings_read_the_message_that_came() -> None:
    route = start().enrich({"id": body.id + 1, "price": body.id * 1.0}).to("x")
    assert through(route, [{"id": 1}]).bodies("x") == [{"id": 2, "price": 1.0}]


def test_a_row_of_a_table_is_added() -> None:
    route = start().keep("name").enrich_from(CITIES, body.name).to("x")
    result = through(route, [{"name": "a"}, {"name": "b"}, {"name": "z"}, {}])
    assert result.bodies("x") == [{"name": "a", "city": "Rome", "rank": 1}, {"name": "b", "rank": 2}, {"name": "z"}, {}]


def test_a_row_can_stand_under_a_name_of_its_own() -> None:
    route = start().keep("name").enrich_from(CITIES, body.name, fields=["city"], into="place").to("x")
    assert through(route, [{"name": "a"}, {"name": "b"}, {"name": "z"}]).bodies("x") == [
        {"name": "a", "place": {"city": "Rome"}}, {"name": "b", "place": {}}, {"name": "z"},
    ]  # fmt: skip


def test_a_message_without_a_row_dies_where_asked() -> None:
    result = through(start().enrich_from(CITIES, body.name, missing="dead").to("x"), [{"name": "z"}, {}, {"name": "a"}])
    assert why(result) == [
        ("enrich_from", "NotInTable", "cities has no row for z"),
        ("enrich_from", "NotInTable", "cities has no row for nothing"),
    ]
    assert len(result.messages("x")) == 1


def test_lookups_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PenstockError, match="the table cities has no column 'town'"):
        _ = app(start().enrich_from(CITIES, body.name, fields=["town"]).to("x")).plan
    with pytest.raises(PenstockError, match="the key of cities is STRING, but id is BIGINT"):
        _ = app(start().enrich_from(CITIES, body.id).to("x")).plan
    with pytest.raises(PenstockError, match="missing='false' is not a policy"):
        start().enrich_from(CITIES, body.name, missing="false")

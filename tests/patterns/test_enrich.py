from __future__ import annotations

import pytest

from penstock import Json, Memory, Route, body, call, lookup_table
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


def test_a_field_inside_an_object_is_added_or_replaced_alone() -> None:
    route = start().enrich({"who.rank": body.id, "who.home.zip": 7, "who.home.land": "DE", "new.deep.x": 1}).to("x")
    who = {"name": "Ada", "home": {"city": "Rome", "zip": 1}}
    assert through(route, [{"id": 5, "who": who}]).bodies("x") == [
        {
            "id": 5,
            "who": {"name": "Ada", "home": {"city": "Rome", "zip": 7, "land": "DE"}, "rank": 5},
            "new": {"deep": {"x": 1}},
        }
    ]


@pytest.mark.parametrize("who", [{}, {"who": None}, {"who": {}}, {"who": {"home": None}}])
def test_an_object_that_is_not_there_is_made_with_the_new_field_alone(who: dict[str, object]) -> None:
    result = through(start().enrich({"who.home.land": "DE"}).to("x"), [{"id": 1, **who}])
    assert result.bodies("x") == [{"id": 1, "who": {"home": {"land": "DE"}}}]


def test_the_object_that_came_in_is_not_changed_for_others() -> None:
    first = start().tap("copy").enrich({"who.name": "new"}).to("x")
    result = through(first, [{"id": 1, "who": {"name": "old", "home": {"zip": 1}}}])
    assert result.bodies("copy") == [{"id": 1, "who": {"name": "old", "home": {"zip": 1}}}]
    assert result.bodies("x") == [{"id": 1, "who": {"name": "new", "home": {"zip": 1}}}]


def test_new_fields_stand_after_those_that_were_there_at_every_level() -> None:
    result = through(start().enrich({"who.name": "N", "id": 2}).to("x"), [{"id": 1, "who": {"home": {}}, "name": "n"}])
    assert result.messages("x")[0].raw == b'{"name":"n","who":{"home":{},"name":"N"},"id":2}'


def test_an_object_is_replaced_as_a_whole_by_its_own_name() -> None:
    route = start().enrich({"who": body.who.home}).to("x")
    assert through(route, [{"who": {"name": "N", "home": {"zip": 1}}}]).bodies("x") == [{"who": {"zip": 1}}]


def test_of_an_object_that_is_enriched_only_the_fields_that_somebody_reads_are_decoded() -> None:
    route = start().enrich({"who.rank": body.id}).keep("who.rank", "who.home.city").to("x")
    assert str(app(route).plan.entries[0].scope.wanted) == "STRUCT<id: BIGINT, who: STRUCT<home: STRUCT<city: STRING>>>"


def test_what_has_no_fields_of_its_own_gets_none() -> None:
    with pytest.raises(PenstockError, match=r"field 'id' is BIGINT: 'id.x' cannot be put into it") as refused:
        _ = app(start().enrich({"id.x": 1}).to("x")).plan
    assert "choose another name, or give 'id' a new value as a whole" in str(refused.value)
    with pytest.raises(PenstockError, match=r"field 'who.home.zip' is BIGINT: 'who.home.zip.a.b' cannot be put"):
        _ = app(start().enrich({"who.home.zip.a.b": 1}).to("x")).plan
    with pytest.raises(PenstockError, match=r"field 'v' is VARIANT: 'v.x' cannot be put into it") as refused:
        _ = app(Route("r", Memory((), Json("v VARIANT"))).enrich({"v.x": 1}).to("x")).plan
    assert "declare its fields" in str(refused.value)

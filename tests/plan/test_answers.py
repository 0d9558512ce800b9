"""Which conditions a decoder answers, and which fields then stay behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import App, Csv, Json, Memory, Parquet, Route, Void, Xml, body, call, join
from penstock.plan.plan import Entry, Plan
from penstock.route.route import Route as RouteType

ORDER = Json(
    "id BIGINT, kind STRING, total DOUBLE, paid BOOLEAN, tags ARRAY<STRING>, owner STRUCT<name: STRING, city: STRING>"
)
SOURCE = Memory(format=ORDER)


def plan(*routes: RouteType) -> Plan:
    channels = {channel for route in routes for step in route.steps for channel in step.sends_to()}
    read = {name for route in routes for name in getattr(route.source, "sources", (route.source,))}
    sinks = {name: Void() for name in channels if name not in read}
    return App("app", *routes, sinks=sinks, dead_letters=Void()).plan


def entry(*routes: RouteType) -> Entry:
    (only,) = plan(*routes).entries
    return only


def steps(found: Entry) -> list[str]:
    return [answer.step for answer in found.answers]


def test_a_field_that_only_conditions_read_stays_behind() -> None:
    found = entry(Route("r", SOURCE).filter(body.total > 5).choice({"a": body.kind == "x"}, otherwise="b"))
    assert steps(found) == ["r.filter", "r.choice"]
    assert found.parsed.ddl() == "kind STRING, total DOUBLE"
    assert found.scope.wanted.ddl() == ""


def test_a_field_that_somebody_else_reads_goes_on() -> None:
    asked = Route("r", SOURCE).filter((body.total > 5) & (body.kind == "x"))
    found = entry(asked.translate({"t": body.total + 1}).to("x"))
    assert steps(found) == ["r.filter"]
    assert found.parsed.ddl() == "kind STRING, total DOUBLE"
    assert found.scope.wanted.ddl() == "total DOUBLE"


def test_a_condition_on_fields_that_go_on_anyway_is_not_answered() -> None:
    found = entry(Route("r", SOURCE).filter(body.total > 5).translate({"t": body.total + 1}).to("x"))
    assert steps(found) == []
    assert found.parsed == found.scope.wanted


def test_more_answers_than_fields_are_not_worth_it() -> None:
    found = entry(Route("r", SOURCE).filter(body.id > 1).filter(body.id < 9).to("x"))
    assert steps(found) == []
    assert found.scope.wanted.ddl() == "id BIGINT"


def test_a_choice_is_one_answer_whatever_the_number_of_its_cases() -> None:
    cases = {f"c{number}": body.id == number for number in range(9)}
    assert steps(entry(Route("r", SOURCE).choice(cases, otherwise="rest"))) == ["r.choice"]


def test_a_nested_field_stays_behind_beside_one_that_goes_on() -> None:
    asked = Route("r", SOURCE).filter(body.owner.city == "Bonn")
    found = entry(asked.translate({"n": call("upper", body.owner.name)}).to("x"))
    assert found.parsed.ddl() == "owner STRUCT<name: STRING, city: STRING>"
    assert found.scope.wanted.ddl() == "owner STRUCT<name: STRING>"


@pytest.mark.parametrize(
    "route",
    [
        Route("r", SOURCE).filter(body.total > 5, missing="dead").to("x"),
        Route("r", SOURCE).choice({"a": body.total > 5, "b": body.tags[0] == "x"}, otherwise="c"),
        Route("r", SOURCE).filter(body.total * 2 > 5).to("x"),
        Route("r", SOURCE).translate({"total": body.total}).filter(body.total > 5).to("x"),
        Route("r", SOURCE).balance("a", "b", sticky=body.kind),
    ],
    ids=["strict", "one case", "arithmetic", "rewritten", "no condition"],
)
def test_other_conditions_are_not_answered(route: RouteType) -> None:
    assert steps(entry(route)) == []


def test_a_condition_in_a_later_route_is_answered_while_the_body_is_as_it_came() -> None:
    found = entry(
        Route("r", SOURCE).multicast("a", "b"),
        Route("s", "a").filter(body.total > 5).to("x"),
        Route("t", "b").translate({"kind": body.kind, "more": body.tags}).filter(body.kind == "x").keep("more").to("y"),
    )
    assert steps(found) == ["s.filter"]
    assert found.scope.wanted.ddl() == "kind STRING, tags ARRAY<STRING>"


def test_bodies_that_were_joined_are_not_asked() -> None:
    made = plan(
        Route("a", SOURCE).filter(body.id > 1).to("c"),
        Route("b", Memory(format=ORDER)).to("d"),
        Route("j", join("c", "d")).filter(body.kind == "x").to("x"),
    )
    assert [(steps(found), found.scope.wanted.ddl()) for found in made.entries] == [
        (["a.filter"], "kind STRING"),
        ([], "kind STRING"),
    ]


def test_a_whole_body_leaves_nothing_to_spare() -> None:
    app = App("app", Route("r", SOURCE).filter(body.total > 5).to("x", Memory(format=Xml())), dead_letters=Void())
    assert app.plan.entries[0].answers == ()


@pytest.mark.parametrize("format", [Csv("id BIGINT, kind STRING"), Xml("id BIGINT, kind STRING"), ORDER])
def test_every_decoder_answers(format: Csv | Xml | Json) -> None:
    assert steps(entry(Route("r", Memory(format=format)).filter(body.kind == "x").to("x"))) == ["r.filter"]


def test_typed_columns_have_no_decoder(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1])}), tmp_path / "a.parquet")
    assert steps(entry(Route("r", Parquet(tmp_path)).filter(body.id > 5).to("x"))) == []


def test_explain_says_what_is_answered_and_what_goes_on() -> None:
    app = App("app", Route("r", SOURCE).filter(body.total > 5).filter(body.kind == "x", name="kind").to("x", Void()))
    assert "reads kind STRING, total DOUBLE  | answers r.filter, r.kind, passes on nothing\n" in app.explain()

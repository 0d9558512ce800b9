"""Which steps a decoder does, and what then stays behind."""

from __future__ import annotations

import json

import pytest

from penstock import App, Csv, Files, Json, Memory, Parquet, Route, body, collect, join
from penstock.endpoints.base import Sink
from penstock.plan.plan import Plan
from penstock.testing import SPARK, STREAM, run

PLAIN = Json("id BIGINT, total DOUBLE, note STRING")
LINES = "lines ARRAY<STRUCT<sku: STRING, price: DOUBLE>>"
OWNER = "owner STRUCT<parts: ARRAY<STRUCT<n: BIGINT>>>"
LISTED = Json(f"id BIGINT, {LINES}, {OWNER}")
ORDER = Json("id BIGINT, total DOUBLE, note STRING, paid BOOLEAN, tags ARRAY<STRING>, owner STRUCT<name: STRING>")


def start() -> Route:
    return Route("r", Memory(format=ORDER))


def plan(route: Route, sink: Sink | None = None) -> Plan:
    return App("a", route.to("out", sink or Memory())).plan


def is_written(found: Plan) -> bool:
    assert bool(found.entries[0].written) is any(stage.written for stage in found.stages())
    return bool(found.entries[0].written)


def test_a_translation_that_picks_fields_is_written_by_the_decoder() -> None:
    found = plan(start().filter(body.paid).translate({"n": body.id, "who": body.owner.name}))
    assert is_written(found)
    assert found.entries[0].scope.wanted.ddl() == ""
    assert found.entries[0].parsed.ddl() == "id BIGINT, paid BOOLEAN, owner STRUCT<name: STRING>"


@pytest.mark.parametrize(
    ("route", "parsed"),
    [
        (start().keep("id", "note"), "id BIGINT, note STRING"),
        (Route("r", Memory(format=PLAIN)).split_fields(), PLAIN.schema.ddl()),
        (Route("r", Memory(format=PLAIN)).split_fields(head=["id"]), PLAIN.schema.ddl()),
        (Route("r", Memory(format=LISTED)).split(body.lines), LINES),
        (Route("r", Memory(format=LISTED)).split(body.owner.parts), OWNER),
    ],
)
def test_so_are_content_filters_and_parts(route: Route, parsed: str) -> None:
    found = plan(route)
    assert is_written(found)
    assert found.entries[0].scope.wanted.ddl() == ""
    assert found.entries[0].parsed.ddl() == parsed


@pytest.mark.parametrize(
    ("route", "sink"),
    [
        (start().translate({"n": body.id + 1}), None),
        (start().translate({"tags": body.tags}), None),
        (start().translate({"a.b": body.id}), None),
        (start().translate({"n": body.id}).filter(body.n > 1), None),
        (start().translate({"n": body.id}).enrich({"more": 1}), None),
        (start().translate({"n": body.id}).filter(body.n > 1, missing="dead"), None),
        (start().translate({"n": body.id}).aggregate(collect("all"), by=body.n, size=2), None),
        (start().keep("id", "owner"), None),
        (start().split_fields(), None),
        (start().split(body.tags), None),
        (Route("r", Memory(format=PLAIN)).split_fields().filter(body.id > 1), None),
        (Route("r", Memory(format=PLAIN)).split_fields(error_budget=1), None),
        (Route("r", Memory(format=LISTED)).split(body.lines, into="line", head=["id"]), None),
        (start().translate({"n": body.id}), Parquet("out")),
        (start().translate({"n": body.id}), Files("out", Csv("n BIGINT"))),
    ],
)
def test_others_are_not(route: Route, sink: Sink | None) -> None:
    assert not is_written(plan(route, sink))


def test_bodies_that_meet_others_or_are_needed_as_they_came_are_not() -> None:
    tapped = start().tap("seen").translate({"n": body.id}).to("out")
    assert not is_written(App("a", tapped, sinks={"seen": Memory(), "out": Memory()}).plan)
    halves = start().choice({"a": body.id > 5}, otherwise="b")
    one = Route("one", "a").translate({"n": body.id}).to("c")
    other = Route("other", "b").translate({"m": body.id}).to("d")
    together = Route("all", join("c", "d")).to("out", Memory())
    assert not is_written(App("a", halves, one, other, together).plan)


@pytest.mark.parametrize("engine", [SPARK, STREAM])
def test_spark_delivers_what_the_reference_does(engine: str) -> None:
    app = App(
        "a",
        start()
        .filter(body.id != 3)
        .translate({"n": body.id, "t": body.total, "text": body.note, "p": body.paid, "who": body.owner.name})
        .multicast("left", "right"),
        Route("balanced", "left").balance("one", "two"),
        sinks={"right": Memory(), "one": Memory(), "two": Memory()},
    )
    assert is_written(app.plan)
    bodies = [
        {"id": 1, "total": 5, "note": 'a "quoted" ü', "paid": True, "owner": {"name": "ann"}},
        {"id": 2, "total": 1e20, "owner": {}},
        {"id": 3},
        {},
        {"id": "four"},
    ]
    messages: list[object] = [*map(json.dumps, bodies), "broken"]
    expected, found = run(app, messages), run(app, messages, engine)
    for channel in ("right", "one", "two"):
        assert found.bodies(channel) == expected.bodies(channel)
    letters = [[(one.error, one.message.raw) for one in result.dead] for result in (found, expected)]
    assert letters[0] == letters[1]
    assert found.summary.conserved


@pytest.mark.parametrize("engine", [SPARK, STREAM])
@pytest.mark.parametrize(
    "app",
    [
        App("a", Route("r", Memory(format=PLAIN)).split_fields(head=["id"]).to("out", Memory())),
        App("a", Route("r", Memory(format=PLAIN)).filter(body.id != 2).split_fields().to("out", Memory())),
        App("a", Route("r", Memory(format=LISTED)).split(body.lines).multicast("out", "more"),
            sinks={"out": Memory(), "more": Memory()}),
        App("a", Route("r", Memory(format=PLAIN)).keep("id", "note").to("out", Memory())),
    ],
    ids=["head", "fields", "elements", "keep"],
)  # fmt: skip
def test_spark_splits_as_the_reference_does(app: App, engine: str) -> None:
    assert is_written(app.plan)
    bodies = [
        {"id": 1, "total": 5, "note": 'a "quoted" ü', "lines": [{"sku": "x", "price": 1.5}, {"sku": "y"}, None, {}]},
        {"id": 2, "total": 1e20, "lines": []},
        {"note": "no id", "lines": None},
        {},
        {"id": "four"},
    ]
    messages: list[object] = [*map(json.dumps, bodies), "broken"]
    expected, found = run(app, messages), run(app, messages, engine)
    parts = [[(one.id, one.lineage) for one in result.messages("out")] for result in (found, expected)]
    assert parts[0] == parts[1]
    assert found.bodies("out") == expected.bodies("out")
    assert found.summary.steps == expected.summary.steps
    assert found.summary.conserved

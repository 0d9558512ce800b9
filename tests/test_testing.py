"""The testing kit: lists in, lists out, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import App, Console, Csv, Files, Json, Message, Rate, Route, Void, body
from penstock.errors import PenstockError
from penstock.testing import REFERENCE, SPARK, STREAM, on_lists, run

APP = App(
    "prices",
    Route("intake", Files("never/read", Json("total DOUBLE"))).choice({"cheap": body.total < 100}, otherwise="rest"),
    Route("rest", "rest").to("dear", Files("never/written", Csv("total DOUBLE"))),
    sinks={"cheap": Console()},
    dead_letters=Files("never/written/either"),
)
GIVEN = [{"total": 50}, '{"total": 500}', b'{"total": 70}', Message("own", b'{"total": 1}'), "broken"]


@pytest.mark.parametrize("engine", [REFERENCE, SPARK, STREAM])
def test_an_app_runs_on_lists_with_every_engine(spark: SparkSession, engine: str) -> None:
    result = run(APP, GIVEN, engine, partitions=2, rows_per_batch=3)
    assert sorted(body["total"] for body in result.bodies("cheap")) == [1, 50, 70]
    assert [float(value) for value in result.bodies("dear")] == [500.0]
    assert [(letter.error, letter.message.raw) for letter in result.dead] == [("MalformedBody", b"broken")]
    assert result.filtered == {}
    assert result.summary.conserved
    assert not Path("never").exists()


def test_messages_are_in_the_order_of_their_ids() -> None:
    app = App("many", Route("r", Rate()).to("x", Void()))
    result = run(app, [{"value": number} for number in range(12)])
    assert [message.id for message in result.messages("x")] == [f"r/0/{number}" for number in range(12)]


def test_bodies_that_are_not_json_are_text() -> None:
    app = App("text", Route("r", Files("x")).to("y", Void()))
    assert run(app, ["plain", b"\xff", "7"]).bodies("y") == ["plain", "\ufffd", 7]


def test_each_of_several_sources_gets_its_own_list() -> None:
    app = App("two", Route("a", Rate()).to("x", Void()), Route("b", Rate()).to("y", Void()))
    result = run(app, {"a": [{"value": 1}]})
    assert (result.bodies("x"), result.bodies("y")) == ([{"value": 1}], [])
    with pytest.raises(PenstockError) as caught:
        run(app, [{"value": 1}])
    assert str(caught.value) == (
        "BadRoute: app 'two' has 2 sources: a, b\n  fix  give the messages of each as {route: [...]}"
    )


def test_names_that_are_not_there_are_named() -> None:
    with pytest.raises(PenstockError, match="no sink is bound to channel 'chep'\n  fix  did you mean 'cheap'"):
        run(APP, []).bodies("chep")
    with pytest.raises(PenstockError, match="no route named 'intak' has a source\n  fix  did you mean 'intake'"):
        run(APP, {"intak": []})
    with pytest.raises(PenstockError, match="there is no engine 'sparc'\n  fix  did you mean 'spark'"):
        run(APP, [], "sparc")


def test_the_app_itself_is_not_changed() -> None:
    before = APP.explain()
    on_lists(APP, {"intake": []})
    assert APP.explain() == before

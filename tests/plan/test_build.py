"""Everything a user can get wrong in the graph of an app, and what the error says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import App, Files, Json, Memory, Route, Void, Xml, body, join
from penstock.errors import PenstockError

FIELDS = Json("id BIGINT, total DOUBLE, note STRING")


def source() -> Memory:
    return Memory(format=FIELDS)


def said(make: Callable[[], App]) -> str:
    """The error's text, with the line number left out."""
    with pytest.raises(PenstockError) as caught:
        _ = make().plan
    return re.sub(r"\S*test_build\.py:\d+", "HERE", str(caught.value))


def test_channel_that_no_route_reads() -> None:
    def app() -> App:
        return App(
            "a",
            Route("orders", source())
                .to("bilng"),
            Route("b", "billing").to("x"), sinks={"x": Void()},
        )  # fmt: skip

    assert said(app) == (
        "UnknownChannel: route 'orders' sends to channel 'bilng', which no route reads\n"
        '  at   HERE  .to("bilng"),\n'
        "  fix  did you mean 'billing'? known: billing, x; or give it a sink"
    )


def test_channel_that_no_route_sends_to() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).to("orders", Void()),
            Route("b", "ordes").to("orders"),
        )  # fmt: skip

    assert said(app) == (
        "UnknownChannel: route 'b' reads channel 'ordes', which no route sends to\n"
        '  at   HERE  Route("b", "ordes").to("orders"),\n'
        "  fix  did you mean 'orders'? known: orders"
    )


def test_cycle() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).to("x"),
            Route("b", join("x", "z")).to("y"),
            Route("c", "y").choice({"z": body.id > 1}, otherwise="out"),
            sinks={"out": Void()},
        )  # fmt: skip

    text = said(app)
    assert text.startswith("RouteCycle: messages would go round for ever: ")
    assert re.search(r"(b -> c -> b|c -> b -> c)\n", text)
    assert text.endswith("  fix  send them to a channel that leads out, or stop with a filter in front")


def test_unknown_field() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source())
                .filter(body.totl > 1)
                .to("x", Void())
        )  # fmt: skip

    assert said(app) == (
        "UnknownField: route 'r', step 'filter': the body has no field 'totl'\n"
        "  at   HERE  .filter(body.totl > 1)\n"
        "  fix  did you mean 'total'? known: id, note, total"
    )


def test_condition_on_types_that_do_not_go_together() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source())
                .filter(body.note > 1, name="positive")
                .to("x", Void())
        )  # fmt: skip

    assert said(app) == (
        "TypeMismatch: route 'r', step 'positive': STRING > BIGINT cannot be compared\n"
        '  at   HERE  .filter(body.note > 1, name="positive")\n'
        "  fix  convert one side with to_integer(...) or to_string(...)"
    )


def test_condition_that_is_not_one() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source())
                .choice({"x": body.note}, otherwise="x"), sinks={"x": Void()}
        )  # fmt: skip

    assert said(app).startswith(
        "TypeMismatch: route 'r', step 'choice': a condition is true or false, but note is STRING\n"
    )


def test_two_steps_of_one_name() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).filter(body.id > 1, name="f")
                .filter(body.id > 2, name="f")
                .to("x", Void())
        )  # fmt: skip

    assert said(app) == (
        "DuplicateName: route 'r' has two steps named 'f'\n"
        '  at   HERE  .filter(body.id > 2, name="f")\n'
        "  fix  rename one of them"
    )


def test_two_routes_of_one_name() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).to("x", Void()),
            Route("r", source()).to("x"),
        )  # fmt: skip

    assert said(app) == (
        "DuplicateName: two routes are named 'r'\n"
        '  at   HERE  Route("r", source()).to("x"),\n'
        "  fix  rename one of them"
    )


def test_route_that_ends_nowhere() -> None:
    def app() -> App:
        return App(
            "a",
            Route("r", source()).filter(body.id > 1),
        )  # fmt: skip

    assert said(app) == (
        "BadRoute: the messages of route 'r' go nowhere after its last step\n"
        '  at   HERE  Route("r", source()).filter(body.id > 1),\n'
        '  fix  end it with .to("channel"), .choice, .balance, .multicast or .recipients'
    )


def test_channel_that_two_routes_read() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).to("x"), Route("b", "x").to("y", Void()),
            Route("c", "x").to("y"),
        )  # fmt: skip

    assert said(app) == (
        "DuplicateName: channel 'x' is read by routes 'b' and 'c'\n"
        '  at   HERE  Route("c", "x").to("y"),\n'
        "  fix  multicast to two channels, one for each route"
    )


def test_channel_with_a_sink_and_a_reader() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).to("x", Void()),
            Route("b", "x").to("y", Void()),
        )  # fmt: skip

    assert said(app) == (
        "DuplicateName: channel 'x' has a sink and is read by route 'b'\n"
        '  at   HERE  Route("b", "x").to("y", Void()),\n'
        "  fix  tap it into a second channel"
    )


def test_sink_that_nobody_feeds() -> None:
    def app() -> App:
        return App("a", Route("r", source()).to("reports", Void()), sinks={"report": Void()})

    text = said(app)
    what = "UnknownChannel: the sink of channel 'report' gets nothing: no route sends there"
    assert text.startswith(f"{what}\n  at   HERE")
    assert text.endswith("  fix  did you mean 'reports'? known: reports")


def test_what_only_a_source_can_be_told() -> None:
    read = Files("out", FIELDS, records="array")

    def step() -> App:
        return App(
            "a",
            Route("r", source())
                .to("x", read),
        )  # fmt: skip

    def bound() -> App:
        return App("a", Route("r", source()).to("x"), sinks={"x": read})

    def dead() -> App:
        return App("a", Route("r", source()).to("x", Void()), dead_letters=read)

    fix = "leave out records=: it says how files are read"
    assert said(step) == (
        "BadEndpoint: channel 'x' ends in files out, which is written in lines\n"
        f'  at   HERE  .to("x", read),\n  fix  {fix}'
    )
    for make, what in ((bound, "channel 'x' ends"), (dead, "the dead letters end")):
        text = said(make)
        assert text.startswith(f"BadEndpoint: {what} in files out, which is written in lines\n  at   HERE  return App(")
        assert text.endswith(f"\n  fix  {fix}")


def test_channel_with_two_sinks() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).to("x", Files("one")),
            Route("q", source())
                .to("x", Files("two")),
        )  # fmt: skip

    assert said(app).startswith(
        "DuplicateName: channel 'x' has two sinks\n"
        '  at   HERE  .to("x", Files("two")),'
    )  # fmt: skip


def test_path_into_a_document_that_was_rewritten() -> None:
    def app() -> App:
        return App(
            "a", Route("r", Memory(format=Xml("id BIGINT"))).keep("id")
                .filter("xpath('/m/id')")
                .to("x", Void())
        )  # fmt: skip

    assert said(app) == (
        "BadExpression: route 'r', step 'filter': a path into the original document cannot be followed after the body"
        " was rewritten or joined\n"
        "  at   HERE  .filter(\"xpath('/m/id')\")\n"
        "  fix  read it before that step, or use body fields"
    )


def test_bodies_that_do_not_join() -> None:
    def app() -> App:
        return App(
            "a", Route("r", source()).to("x"), Route("q", Memory(format=Json("id STRING"))).to("y"),
            Route("both", join("x", "y")).to("z", Void()),
        )  # fmt: skip

    assert said(app) == (
        "BadSchema: route 'both': field 'id' is BIGINT on one side and STRING on the other\n"
        '  at   HERE  Route("both", join("x", "y")).to("z", Void()),'
    )


def test_step_after_the_end() -> None:
    with pytest.raises(PenstockError) as caught:
        Route("r", source()).to("x").filter(body.id > 1)
    assert caught.value.what == "route 'r': nothing can follow a message channel"
    assert caught.value.fix == "continue in another route that reads one of its channels"


def test_source_without_its_file(tmp_path: Path) -> None:
    from penstock import Parquet

    path = str(tmp_path / "none.parquet")
    text = said(lambda: App("a", Route("r", Parquet(path)).to("x", Void())))
    assert text.startswith(f"BadEndpoint: route 'r': there is no Parquet file at {path}\n")
    assert text.endswith("  fix  check the path, or give the schema")


def test_steps_are_named_after_their_pattern_and_numbered() -> None:
    route = Route("r", source()).filter(body.id > 1).filter(body.id > 2).tap("t").to("x", Void())
    app = App("a", route, sinks={"t": Void()})
    assert [stage.title for stage in app.plan.stages()] == ["r.filter", "r.filter-2", "r.tap", "r.to"]

"""What every sink is promised, and what is refused because it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import App, Console, Files, Frame, Json, Memory, Parquet, Rate, Route, Void, body, join, lookup_table
from penstock.delivery import AT_LEAST_ONCE, BEST_EFFORT, EXACTLY_ONCE, IN_ORDER, LEVELS, includes, weakest
from penstock.endpoints.base import Sink, Source
from penstock.errors import PenstockError
from penstock.route.yaml import from_yaml, to_yaml

ORDER = Json("id BIGINT, note STRING")


def source(delivery: str | None = None, of: Source | None = None) -> Route:
    return Route("r", of or Memory((), ORDER), delivery=delivery)


def promised(*routes: Route, **sinks: Sink) -> dict[str, str]:
    plan = App("a", *routes, sinks=sinks, dead_letters=Files("dead")).plan
    return {outlet.channel: outlet.delivery for outlet in plan.outlets}


def said(*routes: Route, **sinks: Sink) -> str:
    with pytest.raises(PenstockError) as caught:
        promised(*routes, **sinks)
    return "\n".join(line for line in str(caught.value).splitlines() if not line.startswith("  at "))


def test_levels_include_those_before_them() -> None:
    assert [includes(given, EXACTLY_ONCE) for given in LEVELS] == [False, False, True, True]
    assert weakest(IN_ORDER, AT_LEAST_ONCE, EXACTLY_ONCE) == AT_LEAST_ONCE


def test_without_asking_a_sink_gives_what_it_can_up_to_exactly_once() -> None:
    sinks = {"a": Files("a"), "b": Parquet("b"), "c": Console(), "d": Memory(), "e": Void()}
    assert promised(source().multicast(*sinks), **sinks) == {
        "a": EXACTLY_ONCE, "b": EXACTLY_ONCE, "c": BEST_EFFORT, "d": BEST_EFFORT, "e": BEST_EFFORT,
    }  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_a_sink_of_files_gives_what_its_route_asks_for(level: str) -> None:
    assert promised(source(level).to("x"), x=Files("x")) == {"x": level}


def test_a_route_asks_for_the_routes_after_it_unless_they_ask_themselves() -> None:
    first = source(IN_ORDER).tap("loose").to("strict")
    loose = Route("audit", "loose", delivery=BEST_EFFORT).to("seen")
    strict = Route("on", "strict").filter(body.id > 0).to("kept")
    assert promised(first, loose, strict, seen=Files("s"), kept=Files("k")) == {"seen": BEST_EFFORT, "kept": IN_ORDER}


def test_where_routes_meet_the_most_demanding_one_counts() -> None:
    one, two = Route("one", Rate(), delivery=BEST_EFFORT).to("a"), Route("two", Rate(), delivery=AT_LEAST_ONCE).to("b")
    assert promised(one, two, Route("both", join("a", "b")).to("x"), x=Files("x")) == {"x": AT_LEAST_ONCE}
    usual = Route("two", Rate()).to("b")
    assert promised(one, usual, Route("both", join("a", "b")).to("x"), x=Files("x")) == {"x": EXACTLY_ONCE}


def test_more_than_a_sink_gives_is_refused() -> None:
    assert said(source(EXACTLY_ONCE).to("x"), x=Console()) == (
        "BadRoute: route 'r' asks for 'exactly once', and channel 'x' ends in console, which gives 'best effort'\n"
        "  fix  end in Files, Log, KafkaTopic, Parquet, Table or Postgres, or write delivery='best effort'"
    )
    later = Route("later", "c").to("x")
    assert said(source(AT_LEAST_ONCE).to("c"), later, x=Memory()).startswith(
        "BadRoute: route 'r' asks for 'at least once', and channel 'x' ends in memory"
    )


def test_more_than_a_source_gives_is_refused() -> None:
    frame: Any = object()
    assert said(source(AT_LEAST_ONCE, Frame(frame, ORDER)).to("x"), x=Files("x")) == (
        "BadRoute: route 'r' asks for 'at least once', and route 'r' reads dataframe, which cannot be read again after "
        "a crash\n  fix  read a source that can, or write delivery='best effort'"
    )
    assert promised(source(None, Frame(frame, ORDER)).to("x"), x=Files("x")) == {"x": BEST_EFFORT}
    again = Frame(frame, ORDER, replays=True)
    assert promised(source(EXACTLY_ONCE, again).to("x"), x=Files("x")) == {"x": EXACTLY_ONCE}
    app = App("a", source(None, Frame(frame, ORDER)).to("x"), sinks={"x": Files("x")})
    assert app.plan.dead_delivery == BEST_EFFORT


def test_order_that_would_be_lost_is_refused() -> None:
    fix = "\n  fix  write delivery='exactly once', and order by a field where it is read"
    columns = Parquet("in", schema="id BIGINT")
    assert said(source(IN_ORDER, columns).to("x"), x=Files("x")) == (
        "BadRoute: route 'r' asks for 'exactly once in order', and route 'r' reads parquet in, which Spark does "
        f"not read in order{fix}"
    )
    table = lookup_table([{"id": 1, "name": "a"}], key="id")
    route = source(IN_ORDER).enrich_from(table, on=body.id).to("x")
    assert promised(route, x=Files("x")) == {"x": IN_ORDER}


def test_behind_a_resequencer_the_order_is_that_of_its_numbers() -> None:
    route = source(IN_ORDER, Parquet("in", schema="id BIGINT, note STRING"))
    sequenced = route.resequence(body.id, by=body.note, window=10, timeout="1 minute")
    assert promised(sequenced.to("x"), x=Files("x")) == {"x": IN_ORDER}
    later = Route("later", "c").filter(body.id > 0).to("x")
    assert promised(sequenced.to("c"), later, x=Files("x")) == {"x": IN_ORDER}
    tapped = source(IN_ORDER).tap("y").resequence(body.id, window=10, timeout="1 minute").to("x")
    assert "step 'resequence' of route 'r' does not keep the order" in said(tapped, x=Files("x"), y=Files("y"))
    again = Route("later", "c").idempotent(body.id, keep="1 hour").to("x")
    assert "step 'resequence' of route 'r'" in said(sequenced.to("c"), again, x=Files("x"))


def test_a_step_with_state_moves_all_messages_of_the_app() -> None:
    other = Route("other", Rate()).idempotent(body.value, keep="1 hour").to("y")
    assert "step 'idempotent' of route 'other' does not keep the order" in said(
        source(IN_ORDER).to("x"), other, x=Files("x"), y=Files("y")
    )


def test_messages_that_are_tried_again_are_late() -> None:
    route = source(IN_ORDER).on_error(attempts=3, delay="1 second").filter(body.id > 0).to("x")
    assert "route 'r' tries messages again later" in said(route, x=Files("x"))


def test_messages_that_are_tried_at_once_keep_their_order() -> None:
    route = source(IN_ORDER).filter(body.id > 0, missing="dead").on_error(attempts=3, delay=0).to("x")
    assert promised(route, x=Files("x")) == {"x": IN_ORDER}


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(PenstockError) as caught:
        Route("r", "c", delivery="exactly twice")
    assert str(caught.value).startswith("BadRoute: route 'r': there is no delivery 'exactly twice'\n")
    assert str(caught.value).endswith(
        "did you mean 'exactly once'? known: at least once, best effort, exactly once, exactly once in order"
    )


def test_explain_says_what_every_sink_is_promised() -> None:
    lines = App("a", source(IN_ORDER).to("x", Files("out")), dead_letters=Memory()).explain().splitlines()
    assert (
        "  x := files out  bodies as they came  | exactly once in order: a replayed batch replaces its own files"
        in lines
    )
    assert "dead letters := memory  | best effort: the result of the run holds each message once" in lines


def test_yaml_both_ways() -> None:
    text = (
        "app: a\nroutes:\n  - route: r\n    from: {rate: 10, count: 100}\n    delivery: exactly once in order\n"
        "    steps:\n      - to: x\nsinks:\n  x: {files: out}\n"
    )
    app = from_yaml(text)
    assert app.routes[0].delivery == IN_ORDER
    assert to_yaml(app) == text

"""Dead letters come again: at the step that failed or at the start, alike in the reference and on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import (
    App,
    Json,
    Memory,
    Message,
    Route,
    Xml,
    body,
    collect,
    fold,
    function,
    join,
    sum_of,
    xpath_string,
)  # fmt: skip
from penstock.errors import PenstockError
from penstock.message import DeadLetter
from penstock.testing import REFERENCE, SPARK, Result, replay, run

ORDER = Json("id BIGINT, total DOUBLE, lines ARRAY<STRUCT<sku: STRING, count: BIGINT>>")
ENGINES = [REFERENCE, SPARK]


def fails(value: Any) -> float:
    raise ValueError(f"no price for {value}")


def works(value: Any) -> float:
    return float(value or 0) * 2


def app(*routes: Route) -> App:
    sent = {channel for route in routes for step in route.steps for channel in step.sends_to()}
    read = {route.source for route in routes if isinstance(route.source, str)}
    read |= {name for route in routes for name in getattr(route.source, "sources", ())}
    return App("a", *routes, sinks={channel: Memory() for channel in sent - read}, dead_letters=Memory())


def priced(price: Callable[[Any], float], schema: Json = ORDER) -> App:
    """An app whose price fails in the middle: after a split, in its second route."""
    first = Route("intake", Memory((), schema)).filter(body.id > 0).tap("seen")
    found = function(price, body.line.count, returns="DOUBLE")
    second = Route("pricing", "parts").enrich({"price": found}, name="price")
    return app(first.split(body.lines, into="line", head=["id"]).to("parts"), second.to("out"))


ORDERS = [
    {"id": 1, "total": 5.0, "lines": [{"sku": "a", "count": 2}, {"sku": "b"}]},
    {"id": 2, "lines": []},
    {"id": 3, "lines": [{"sku": "c", "count": 4}, None]},
    b"broken",
]


def both(result: Result) -> tuple[Any, ...]:
    """What the engines must agree on, with the fields that a letter has at a rewritten body."""
    channels = {channel: sorted((m.id, m.raw, m.lineage, sorted(m.headers.items())) for m in result.channels[channel])
                for channel in result.channels}  # fmt: skip
    dead = sorted((d.message.id, d.route, d.step, d.error, d.reason, d.attempt) for d in result.dead)
    return channels, dead, result.summary.delivered, result.summary.copied, result.summary.conserved


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    request.getfixturevalue("spark")
    return str(request.param)


def test_a_letter_goes_on_at_its_step_with_the_body_it_had_there(engine: str) -> None:
    letters = [letter for letter in run(priced(fails), ORDERS, engine).dead if letter.step == "price"]
    assert [letter.message.fields for letter in letters[:1]] == [{"id": 1, "line": {"sku": "a", "count": 2}}]
    result = replay(priced(works), letters, engine)
    assert result.bodies("out") == [
        {"id": 1, "line": {"sku": "a", "count": 2}, "price": 4.0},
        {"id": 1, "line": {"sku": "b"}, "price": 0.0},
        {"id": 3, "line": {"sku": "c", "count": 4}, "price": 8.0},
        {"id": 3, "price": 0.0},
    ]
    assert [message.id for message in result.messages("out")] == [
        "intake/0/0.0", "intake/0/0.1", "intake/0/2.0", "intake/0/2.1",
    ]  # fmt: skip
    assert {message.headers["redelivered"] for message in result.messages("out")} == {"1"}
    assert result.bodies("seen") == []
    assert (result.summary.received, result.summary.conserved) == (4, True)


def test_from_the_start_a_message_comes_once_however_many_parts_died(engine: str) -> None:
    letters = [letter for letter in run(priced(fails), ORDERS, engine).dead if letter.step == "price"]
    result = replay(priced(works), letters, engine, at="start")
    assert (result.summary.received, len(result.messages("seen")), len(result.messages("out"))) == (2, 2, 4)
    assert [message.id for message in result.messages("seen")] == ["intake/0/0", "intake/0/2"]


def test_what_could_not_be_decoded_begins_again(engine: str) -> None:
    (letter,) = [letter for letter in run(priced(works), ORDERS, engine).dead if letter.step == "decode"]
    assert letter.message.fields is None
    again = replay(priced(works), [letter], engine)
    assert [(dead.step, dead.attempt) for dead in again.dead] == [("decode", 2)]
    mended = replace(letter, message=replace(letter.message, raw=b'{"id": 9, "lines": [{"sku": "z", "count": 1}]}'))
    assert replay(priced(works), [mended], engine).bodies("out") == [
        {"id": 9, "line": {"sku": "z", "count": 1}, "price": 2.0}
    ]


def test_a_letter_that_fails_again_has_a_higher_attempt(engine: str) -> None:
    letters = [letter for letter in run(priced(fails), ORDERS, engine).dead if letter.step == "price"][:1]
    for at, attempt in (("step", 2), ("step", 3), ("start", 4)):
        letters = replay(priced(fails), letters, engine, at=at).dead[:1]
        assert (letters[0].attempt, letters[0].step) == (attempt, "price")


def test_an_original_body_is_read_again_as_the_app_wants_it_now(engine: str) -> None:
    failing = function(fails, body.id, returns="DOUBLE") > 0
    before = Route("r", Memory((), ORDER)).filter(failing, name="check").to("x")
    letters = run(app(before), ORDERS[:1], engine).dead
    changed = Route("r", Memory((), ORDER)).filter(body.total > 1, name="check").keep("total", "id").to("x")
    assert replay(app(changed), letters, engine).bodies("x") == [{"total": 5.0, "id": 1}]


def test_paths_of_a_source_are_found_again(engine: str) -> None:
    def made(price: Callable[[Any], float]) -> App:
        route = Route("r", Memory((), Xml("id BIGINT"))).filter(body.id > 0)
        return app(route.enrich({"city": xpath_string("/o/to/city"), "p": function(price, body.id, returns="DOUBLE")},
                                name="price").to("x"))  # fmt: skip

    letters = run(made(fails), ["<o><id>1</id><to><city>Ulm</city></to></o>"], engine).dead
    assert replay(made(works), letters, engine).bodies("x") == [{"id": 1, "city": "Ulm", "p": 2.0}]


def test_steps_that_remember_take_part(engine: str) -> None:
    def made(price: Callable[[Any], float]) -> App:
        route = (
            Route("r", Memory((), ORDER))
            .idempotent(body.id)
            .enrich({"price": function(price, body.total, returns="DOUBLE")}, name="price")
        )
        return app(route.aggregate(fold(sum=sum_of(body.price)), by=body.id, size=2, name="sum").to("x"))

    given = [{"id": 1, "total": 1.0}, {"id": 2, "total": 2.0}, {"id": 3, "total": 3.0}]
    letters = run(made(fails), given, engine).dead
    assert len(letters) == 3
    twice = [*letters, *letters]
    result = replay(made(works), twice, engine)
    assert result.bodies("x") == [{"sum": 2.0}, {"sum": 4.0}, {"sum": 6.0}]
    assert result.summary.filtered == {"r.idempotent": 3}
    assert replay(made(works), letters, engine, at="start").bodies("x") == [{"sum": 2.0}, {"sum": 4.0}, {"sum": 6.0}]


def test_the_body_of_a_letter_is_kept_when_a_later_step_remembers(engine: str) -> None:
    def made(price: Callable[[Any], float]) -> App:
        first = (
            Route("r", Memory((), ORDER))
            .enrich({"a": body.id + 1})
            .enrich({"b": function(price, body.a, returns="DOUBLE")}, name="price")
        )
        second = Route("s", "next").translate({"c": body.b, "k": "one"}).aggregate(collect("all"), by=body.k, size=1)
        return app(first.to("next"), second.to("x"))

    letters = run(made(fails), [{"id": 1}], engine).dead
    assert replay(made(works), letters, engine).bodies("x") == [{"all": [{"c": 4.0, "k": "one"}]}]


@pytest.mark.parametrize("message", ["current", "original"])
def test_a_policy_goes_on_counting(engine: str, message: str) -> None:
    def made(price: Callable[[Any], float], attempts: int) -> App:
        route = (
            Route("r", Memory((), ORDER))
            .enrich({"a": body.id})
            .enrich({"price": function(price, body.total, returns="DOUBLE")}, name="price")
            .to("x")
        )
        return app(route.on_error(attempts=attempts, delay="0 s", message=message))

    letters = run(made(fails, 2), [{"id": 1, "total": 1.5}], engine).dead
    assert [letter.attempt for letter in letters] == [3]
    assert [letter.attempt for letter in replay(made(fails, 2), letters, engine).dead] == [4]
    assert [letter.attempt for letter in replay(made(fails, 5), letters, engine).dead] == [6]
    assert replay(made(works, 2), letters, engine).bodies("x") == [{"id": 1, "total": 1.5, "a": 1, "price": 3.0}]


def letter(**more: Any) -> DeadLetter:
    usual = {"message": Message("m/0/1", b'{"id": 1}'), "route": "r", "step": "s", "error": "E", "reason": "why"}
    return DeadLetter(**{**usual, **more})


def said(made: App, dead: DeadLetter, **how: Any) -> str:
    with pytest.raises(PenstockError) as caught:
        replay(made, [dead], **how)
    return str(caught.value)


def test_what_cannot_go_on_is_refused() -> None:
    a, b = Route("a", Memory((), ORDER)).to("one"), Route("b", Memory((), ORDER)).to("two")
    made = app(a, b, Route("r", join("one", "two")).enrich({"x": body.id}).filter(body.x > 0, name="s").to("out"))
    assert said(made, letter(step="t")) == (
        "CannotReplay: message m/0/1 cannot go on at r.t: the app has no step 't' in route 'r' any more\n"
        "  fix  replay it from the start"
    )
    assert said(made, letter()) == (
        "CannotReplay: message m/0/1 cannot go on at r.s: the body that came to the step was not kept\n"
        "  fix  replay it from the start"
    )
    with_body = Message("m/0/1", b"", fields={"id": 1})
    assert (
        said(made, letter(message=with_body))
        .splitlines()[0]
        .endswith(": the step reads 'total' now, and nobody read it then")
    )
    wrong = Message("m/0/1", b"", fields={"id": 1, "total": 1.0, "lines": None, "x": "much"})
    assert (
        said(made, letter(message=wrong))
        .splitlines()[0]
        .endswith(""": its body does not fit the step: field 'x' is "much", expected BIGINT""")
    )
    assert said(made, letter(), at="start") == (
        "CannotReplay: message m/0/1 cannot go on at r.s: it may have come from more than one source: a, b\n"
        "  fix  say which route read it: --source ROUTE, or replay it at its step"
    )
    assert replay(made, [letter()], at="start", source="b").bodies("out") == [{"id": 1, "x": 1}]
    merged = Message("m/0/1", b"", headers={"completed-by": "size", "group-size": "2"})
    assert (
        said(made, letter(message=merged), at="start")
        .splitlines()[0]
        .endswith("an aggregator put it together, so it has no original")
    )
    assert said(made, letter(), at="middle") == (
        "CannotReplay: dead letters cannot go on at 'middle'\n  fix  known: start, step"
    )
    unknown = said(made, letter(), at="start", source="c").splitlines()[0]
    assert unknown == "CannotReplay: no route named 'c' has a source"


def test_the_engines_agree(spark: SparkSession) -> None:
    broken, mended = priced(fails), priced(works)
    letters = {engine: run(broken, ORDERS, engine).dead for engine in ENGINES}
    for at in ("step", "start"):
        for app_now in (broken, mended):
            left, right = (both(replay(app_now, letters[engine], engine, at=at)) for engine in ENGINES)
            assert left == right


@pytest.mark.parametrize("engine", ENGINES)
def test_a_letter_that_never_came_to_the_start_passes_a_receiver(spark: SparkSession, engine: str) -> None:
    def patient(price: Callable[[Any], float]) -> App:
        route = Route("in", Memory((), ORDER)).on_error(attempts=1, delay="1 ms", message="original")
        route = route.enrich({"price": function(price, body.total, returns="DOUBLE")}).idempotent(body.id)
        return app(route.enrich({"twice": function(works, body.total, returns="DOUBLE")}).to("out"))

    letters = run(patient(fails), [{"id": 1, "total": 2.0}]).dead
    assert [letter.attempt for letter in letters] == [2]
    result = replay(patient(works), letters, engine)
    assert [row["price"] for row in result.bodies("out")] == [4.0]
    assert result.summary.conserved


@pytest.mark.parametrize("engine", ENGINES)
def test_tries_are_counted_behind_a_receiver(spark: SparkSession, engine: str) -> None:
    route = Route("in", Memory((), ORDER)).idempotent(body.id)
    failing = app(route.enrich({"price": function(fails, body.total, returns="DOUBLE")}).to("out"))
    letters = run(failing, [{"id": 1, "total": 2.0}]).dead
    for attempt in (2, 3):
        letters = replay(failing, letters, engine).dead
        assert [letter.attempt for letter in letters] == [attempt]

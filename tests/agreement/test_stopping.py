"""Families of which some members are stopped: Spark says what the reference says, in batch and as a stream."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import App, Json, Memory, Route, body, collect, join
from penstock.testing import REFERENCE, SPARK, STREAM, run
from tests.agreement.test_agreement import SLOW, assert_same, describe

SCHEMA = Json(
    "id BIGINT, n BIGINT, m BIGINT, to ARRAY<STRING>, lines ARRAY<STRUCT<n: BIGINT, parts: ARRAY<STRUCT<n: BIGINT>>>>"
)
BRANCHES = ("parts", "nested", "fields", "copies", "named")
BUDGETS = st.one_of(st.integers(0, 3), st.sampled_from([0.0, 0.2, 0.34, 0.5, 1.0]))
NUMBERS = st.sampled_from([None, 0, 1, 2, 2, 3, 4, 5])
PARTS = st.lists(st.builds(lambda n: {"n": n}, NUMBERS), max_size=4)
LINES = st.lists(st.builds(lambda n, parts: {"n": n, "parts": parts}, NUMBERS, PARTS), max_size=6)
MESSAGES = st.lists(
    st.builds(
        lambda n, m, to, lines: json.dumps({"n": n, "m": m, "to": to, "lines": lines}).encode(),
        NUMBERS,
        NUMBERS,
        st.lists(st.sampled_from(["left", "right", "straight", "nobody"]), max_size=4),
        LINES,
    )
    | st.just(b"broken"),
    min_size=10,
    max_size=40,
)


def no_three(fields: dict[str, Any]) -> bool:
    if fields["n"] == 3:
        raise ValueError("no three")
    return fields["n"] != 0


def branch(kind: str, budget: float) -> list[Route]:
    """Routes that read the channel `kind` and may stop something."""
    start, out = Route(kind, kind), f"{kind} out"
    match kind:
        case "parts":
            split = start.split(body.lines, into="line", head=["id"], error_budget=budget).tap(f"{kind} seen")
            split = split.filter(body.line.n > 0, missing="dead").translate({"n": body.line.n})
            return [split.filter(no_three).to(out)]
        case "nested":
            split = start.split(body.lines, into="line", head=["m"], error_budget=budget)
            split = split.split(body.line.parts, into="part", head=["m"], error_budget=1)
            split = split.translate({"n": body.part.n, "m": body.m}).filter(no_three)
            end = Route("deep", "deep").filter(body.m < 4, missing="dead").to(out)
            return [split.multicast("shallow", "deep", "last", stop_on_exception=True), end]
        case "fields":
            split = start.keep("n", "m").split_fields(error_budget=budget)
            return [split.filter(body.n > 1, missing="dead").to(out)]
        case "copies":
            left = Route("a", "a").filter(no_three).to("a met")
            right = Route("b", "b").filter(body.m > 1, missing="dead").to("b met")
            last = Route("met", join("a met", "b met")).split(body.lines, error_budget=budget)
            return [start.multicast("a", "b", "c", stop_on_exception=True), left, right, last.filter(no_three).to(out)]
    left = Route("left", "left").filter(no_three).to(out)
    right = Route("right", "right").enrich({"m": 1}).filter(body.n > 0, missing="dead").to(out)
    return [start.recipients(body.to, known=["left", "right", "straight"], stop_on_exception=True), left, right]


@st.composite
def apps(draw: Any, branches: int = len(BRANCHES)) -> App:
    """One plan with several branches: much to compare in one run."""
    kinds = draw(st.lists(st.sampled_from(BRANCHES), min_size=2, max_size=branches, unique=True))
    routes = [Route("in", Memory((), SCHEMA)).multicast(*kinds)]
    for kind in kinds:
        routes += branch(kind, draw(BUDGETS))
    return open_ended(*routes)


def open_ended(*routes: Route) -> App:
    read = {name for route in routes for name in getattr(route.source, "sources", (route.source,))}
    sent = {channel for route in routes for step in route.steps for channel in step.sends_to()}
    return App("stopping", *routes, sinks={name: Memory() for name in sent - read}, dead_letters=Memory())


@settings(SLOW, max_examples=2)
@given(apps(branches=2), MESSAGES)
def test_spark_stops_what_the_reference_stops(spark: SparkSession, app: App, messages: list[bytes]) -> None:
    describe(app, messages)
    assert_same(run(app, messages, REFERENCE), run(app, messages, SPARK, partitions=2))


@settings(SLOW, max_examples=1)
@given(apps(branches=2), MESSAGES)
def test_a_stream_stops_what_the_reference_stops(spark: SparkSession, app: App, messages: list[bytes]) -> None:
    describe(app, messages)
    assert_same(run(app, messages, REFERENCE), run(app, messages, STREAM, rows_per_batch=15))


@settings(SLOW, max_examples=100)
@given(apps(), MESSAGES)
def test_nothing_is_lost_when_messages_are_stopped(app: App, messages: list[bytes]) -> None:
    summary = run(app, messages, REFERENCE).summary
    assert summary.conserved
    assert all(step.conserved for step in summary.steps.values())


@settings(SLOW, max_examples=100)
@given(BUDGETS, MESSAGES)
def test_what_is_stopped_follows_from_what_would_fail_without_a_budget(budget: float, messages: list[bytes]) -> None:
    """Parts up to the failure that is too many are as they are without a budget; all after it are dead."""
    source = Route("in", Memory((), SCHEMA)).to("parts")
    free = run(open_ended(source, *branch("parts", 1.0)), messages)
    found = run(open_ended(source, *branch("parts", budget)), messages)
    failed = {letter.message.id for letter in free.dead if letter.message.lineage}
    stopped = set()
    parts = {part.id: part.lineage for part in free.messages("parts seen") if part.lineage}
    for identity, part in parts.items():
        before = sum(f"{part.parent}.{index}" in failed for index in range(part.index))
        if before > (budget * part.count if isinstance(budget, float) else budget):
            stopped.add(identity)
    assert {letter.message.id for letter in found.dead if letter.error == "Stopped"} == stopped
    for channel, arrived in free.channels.items():
        expected = [message.id for message in arrived if message.id not in stopped]
        assert [message.id for message in found.channels[channel]] == expected


def test_state_before_and_beside_a_family(spark: SparkSession) -> None:
    """Rows of a family pass the tasks of a step with state that they never come to."""
    first = Route("in", Memory((), SCHEMA)).idempotent(body.id)
    beside = Route("beside", Memory((), SCHEMA)).aggregate(collect("all"), by=body.n, size=2, invalid="filter")
    last = Route("on", "on").filter(body.line.n > 0, missing="dead").translate({"n": body.n}).filter(no_three)
    split = first.split(body.lines, into="line", head=["n"], error_budget=1).to("on")
    app = open_ended(split, beside.to("grouped"), last.to("x"))
    lines = [[{"n": n} for n in numbers] for numbers in ([1, None, None, 2], [2, 3], [None], [None, None, None, 1, 1])]
    messages = [{"id": number % 3, "n": 1, "lines": line} for number, line in enumerate([*lines, *lines])]
    given: dict[str, Any] = {"in": messages, "beside": [{"n": number % 2} for number in range(5)]}
    expected = run(app, given, REFERENCE)
    assert {letter.error for letter in expected.dead} == {"MissingField", "Stopped"}
    assert_same(expected, run(app, given, SPARK))

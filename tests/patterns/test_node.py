"""What every pattern declares, as the design's table has it."""

from __future__ import annotations

import pytest

from penstock import Route, body, function, join, latest, lookup_table
from penstock.patterns.node import EXPRESSION, NO_USER, PREDICATE, Node, names_of, read_paths, top_level
from tests.patterns.apps import node, start

TABLE = lookup_table([{"key": "a", "v": 1}], key="key")
NODES: list[tuple[Node, str, str, str, str]] = [
    (node(start().choice({"a": body.ok}, otherwise="b")), "content-based router", PREDICATE, "1:n", "1:1"),
    (node(start().filter(body.ok)), "message filter", PREDICATE, "1:1", "1:0|1"),
    (node(start().balance("a", "b")), "load balancer", PREDICATE, "1:n", "1:1"),
    (node(start().recipients(body.name, known=["a"])), "recipient list", PREDICATE, "1:n", "1:n"),
    (node(start().multicast("a", "b")), "multicast", NO_USER, "1:n", "1:n"),
    (join("a", "b"), "join router", NO_USER, "n:1", "1:1"),
    (node(start().split(body.tags)), "splitter", EXPRESSION, "1:1", "1:n"),
    (node(start().split_fields()), "splitter", EXPRESSION, "1:1", "1:n"),
    (node(start().translate({"a": 1})), "message translator", EXPRESSION, "1:1", "1:1"),
    (node(start().keep("id")), "content filter", EXPRESSION, "1:1", "1:1"),
    (node(start().enrich({"a": 1})), "content enricher", EXPRESSION, "1:1", "1:1"),
    (node(start().enrich_from(TABLE, body.name)), "content enricher", EXPRESSION, "1:1", "1:1"),
    (node(start().headers({"a": 1})), "header enricher", EXPRESSION, "1:1", "1:1"),
    (node(start().script(len, "id BIGINT")), "script", EXPRESSION, "1:1", "1:n"),
    (node(start().tap("a")), "wire tap", NO_USER, "1:2", "1:2"),
    (node(start().to("a")), "message channel", NO_USER, "1:1", "1:1"),
    (node(start().aggregate(latest(), by=body.id, size=2)), "aggregator", EXPRESSION, "1:1", "n:1"),
    (node(start().resequence(body.id, size=2)), "resequencer", EXPRESSION, "1:1", "1:1"),
    (node(start().idempotent(body.id)), "idempotent receiver", PREDICATE, "1:1", "1:0|1"),
]


@pytest.mark.parametrize(("step", "pattern", "template", "channels", "messages"), NODES)
def test_a_pattern_declares_its_place(step: Node, pattern: str, template: str, channels: str, messages: str) -> None:
    assert (step.pattern, step.template, step.channels, step.messages) == (pattern, template, channels, messages)
    assert step.stateful == (pattern in ("aggregator", "resequencer", "idempotent receiver"))
    assert step.rewrites == (template == EXPRESSION and pattern not in ("resequencer", "header enricher"))


def test_what_ends_a_route_sends_to_channels() -> None:
    for step, *_ in NODES:
        if step.ends:
            assert step.sends_to()


def test_a_step_reads_the_fields_of_its_expressions() -> None:
    expressions = node(start().filter((body.who.name == "x") & (body.tags[0] == "y"))).expressions()
    assert read_paths(expressions) == {("who", "name"), ("tags",)}
    assert names_of(("lines", 3, "n")) == ("lines",)
    assert top_level(frozenset({("a", "b"), ("c",)}), ("a",)) == {("a", "b")}
    assert top_level(frozenset({()}), ("a", "b")) == {("a",), ("b",)}


FAILING = [
    start().filter(body.ok, missing="dead"),
    start().choice({"a": body.ok}, otherwise="b", missing="dead"),
    start().balance("a", "b", sticky=body.name),
    start().recipients(body.name, known=["a"]),
    start().enrich_from(TABLE, body.name, missing="dead"),
    start().script(len, "id BIGINT"),
    start().translate({"a": function(len, body.name, returns="BIGINT")}),
    start().headers({"a": function(len, body.name, returns="BIGINT")}),
    start().idempotent(body.id),
]
SAFE = [
    start().filter(body.ok),
    start().balance("a", "b"),
    start().enrich_from(TABLE, body.name),
    start().translate({"a": body.id}),
    start().headers({"a": body.id}),
    start().split(body.tags),
    start().to("a"),
    start().idempotent(body.id, invalid="filter"),
]


@pytest.mark.parametrize("route", [*FAILING, *SAFE], ids=lambda route: route.steps[-1].detail())
def test_a_pattern_says_whether_a_message_may_fail_there(route: Route) -> None:
    assert node(route).may_fail == (route in FAILING)


def test_every_pattern_but_the_channel_has_a_picture() -> None:
    assert [step.verb for step, *_ in NODES if not step.icon] == ["to"]

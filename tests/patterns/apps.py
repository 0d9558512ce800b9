"""The smallest app around a step."""

from __future__ import annotations

from collections.abc import Iterable

from penstock import App, Json, Memory, Route
from penstock.patterns.node import Node
from penstock.testing import Result, run

SCHEMA = "id BIGINT, price DOUBLE, name STRING, ok BOOLEAN, tags ARRAY<STRING>, lines ARRAY<STRUCT<sku: STRING, n: BIGINT>>, who STRUCT<name: STRING, home: STRUCT<city: STRING, zip: BIGINT>>"  # noqa: E501


def start(name: str = "r") -> Route:
    return Route(name, Memory((), Json(SCHEMA)))


def app(*routes: Route) -> App:
    """An app whose open channels all end in lists."""
    read = {route.source for route in routes if isinstance(route.source, str)}
    sent = {channel for route in routes for step in route.steps for channel in step.sends_to()}
    return App("test", *routes, sinks={channel: Memory() for channel in sent - read}, dead_letters=Memory())


def through(route: Route, messages: Iterable[object]) -> Result:
    result = run(app(route), messages)
    assert result.summary.conserved
    return result


def node(route: Route) -> Node:
    return route.steps[-1]


def why(result: Result) -> list[tuple[str, str, str]]:
    return [(letter.step, letter.error, letter.reason) for letter in result.dead]

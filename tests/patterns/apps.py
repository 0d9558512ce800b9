"""The smallest app around a step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from penstock import App, Json, Memory, Route
from penstock.patterns.node import Node
from penstock.plan.build import inputs
from penstock.testing import Result, run

SCHEMA = "id BIGINT, price DOUBLE, name STRING, ok BOOLEAN, tags ARRAY<STRING>, lines ARRAY<STRUCT<sku: STRING, n: BIGINT>>, who STRUCT<name: STRING, home: STRUCT<city: STRING, zip: BIGINT>>"  # noqa: E501


def start(name: str = "r") -> Route:
    return Route(name, Memory((), Json(SCHEMA)))


def app(*routes: Route) -> App:
    """An app whose open channels all end in lists."""
    read = {channel for route in routes for channel in inputs(route)}
    sent = {channel for route in routes for step in route.steps for channel in step.sends_to()}
    return App("test", *routes, sinks={channel: Memory() for channel in sent - read}, dead_letters=Memory())


def through(routes: Route | tuple[Route, ...], messages: Iterable[object] | dict[str, list[Any]], **how: Any) -> Result:
    result = run(app(*routes) if isinstance(routes, tuple) else app(routes), messages, **how)
    assert result.summary.conserved
    return result


def arrived(result: Result, channel: str = "x") -> list[Any]:
    """The bodies in a channel, in the order in which they came."""
    return [json.loads(message.raw) for message in result.channels[channel]]


def headers(result: Result, name: str, channel: str = "x") -> list[str | None]:
    return [message.headers.get(name) for message in result.channels[channel]]


def node(route: Route) -> Node:
    return route.steps[-1]


def why(result: Result) -> list[tuple[str, str, str]]:
    return [(letter.step, letter.error, letter.reason) for letter in result.dead]

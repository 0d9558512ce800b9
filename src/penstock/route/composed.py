"""Patterns made of others. Each function returns routes, which an app takes like any others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.endpoints.base import Sink, Source
from penstock.errors import BadRoute, caller
from penstock.expr.columns import meta
from penstock.patterns.aggregate import PARTS
from penstock.patterns.join import Join, join
from penstock.patterns.strategy import Strategy
from penstock.route.route import Route

Steps = Callable[[Route], Route]


def scatter_gather(
    name: str,
    source: Source | Join | str,
    branches: Mapping[str, Steps],
    strategy: Strategy,
    to: str,
    sink: Sink | None = None,
    by: object = None,
    size: int | None = None,
    **settings: Any,
) -> tuple[Route, ...]:
    """Scatter-gather: a copy to every branch, and one message of all the answers.

    `branches` gives the steps of each channel. Answers belong together by the id of the message, which copies share,
    unless `by` says otherwise; `size` is the number of branches, and other settings are those of `aggregate`.
    """
    if not branches:
        raise BadRoute(f"scatter-gather {name!r} needs branches", caller(), 'write {"channel": lambda route: ...}')
    key = meta("id") if by is None else by
    start = Route(name, source).multicast(*branches)
    complete = len(branches) if size is None else size
    answered = [_branch(name, channel, steps) for channel, steps in branches.items()]
    gathered = _gather(name, list(branches)).aggregate(strategy, key, size=complete, **settings)
    return start, *answered, gathered.to(to, sink)


def composed_processor(
    name: str,
    source: Source | Join | str,
    collection: object,
    cases: Mapping[str, tuple[object, Steps]],
    otherwise: tuple[str, Steps],
    strategy: Strategy,
    to: str,
    sink: Sink | None = None,
    into: str | None = None,
    head: Sequence[str] = (),
    tail: Sequence[str] = (),
    **settings: Any,
) -> tuple[Route, ...]:
    """Composed message processor: split, send each part to the steps of its case, and put the parts together again.

    `cases` maps a channel to a condition and its steps, `otherwise` is a channel and its steps. `into`, `head` and
    `tail` are those of `split`; other settings are those of `aggregate`, which waits for all parts.
    """
    channels = [*cases, otherwise[0]]
    if len(set(channels)) != len(channels):
        raise BadRoute(f"composed processor {name!r} has channel {otherwise[0]!r} twice", caller())
    start = Route(name, source).split(collection, into, list(head), list(tail))
    start = start.choice({channel: test for channel, (test, _) in cases.items()}, otherwise=otherwise[0])
    processed = [_branch(name, channel, steps) for channel, (_, steps) in cases.items()]
    processed.append(_branch(name, *otherwise))
    gathered = _gather(name, channels).aggregate(strategy, size=PARTS, **settings)
    return start, *processed, gathered.to(to, sink)


def _branch(name: str, channel: str, steps: Steps) -> Route:
    route = steps(Route(f"{name}-{channel}", channel))
    if not isinstance(route, Route):
        raise BadRoute(f"the steps of channel {channel!r} are {route!r}", caller(),
                       "give a function that returns the route: lambda route: route.enrich(...)")  # fmt: skip
    return route.to(_done(name, channel))


def _gather(name: str, channels: Sequence[str]) -> Route:
    done = [_done(name, channel) for channel in channels]
    return Route(f"{name}-gather", join(*done) if len(done) > 1 else done[0])


def _done(name: str, channel: str) -> str:
    return f"{name}-{channel}-done"

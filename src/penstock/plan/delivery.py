"""Find the delivery level of every sink: what routes ask for, and no more than sources, steps and the sink allow.

A route asks for all messages it handles, also in the routes after it, unless they ask for something else. A route that
does not ask gets the best up to exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from penstock.delivery import BEST_EFFORT, EXACTLY_ONCE, LEVELS, includes, weakest
from penstock.errors import BadRoute
from penstock.patterns.resequence import Resequence
from penstock.plan.plan import Entry, Outlet, Plan, PlannedRoute, Stage

_DURABLE = "end in Files, Log, KafkaTopic, Parquet, Table or Postgres"


@dataclass(frozen=True)
class _Asked:
    """A delivery level and the route that asked for it; no route for the default level."""

    level: str
    route: PlannedRoute | None = None

    def __lt__(self, other: _Asked) -> bool:
        return LEVELS.index(self.level) < LEVELS.index(other.level)


def deliver(plan: Plan) -> Plan:
    """The plan with the promise of every sink; raises when a route asks for more than it can get."""
    before = {route.name: list(routes_before(plan, route)) for route in plan.routes}
    asked: dict[str, _Asked] = {}
    for route in plan.routes:
        inherited = [asked[other.name] for other in _senders(plan, route)]
        own = _Asked(route.delivery, route) if route.delivery else None
        asked[route.name] = own or max(inherited, default=_Asked(EXACTLY_ONCE))
    outlets = tuple(
        replace(
            outlet, delivery=_promise(plan, outlet, [(asked[sender.name], before[sender.name]) for sender in senders])
        )
        for outlet in plan.outlets
        if (senders := [route for route in plan.routes if _sends(route, outlet.channel)])
    )
    return replace(plan, outlets=outlets, dead_delivery=_dead(plan))


def _promise(plan: Plan, outlet: Outlet, arriving: list[tuple[_Asked, list[PlannedRoute]]]) -> str:
    promised = []
    for asked, routes in arriving:
        given, reason, fix = _most(plan, outlet, routes)
        if asked.route is not None and not includes(given, asked.level):
            raise BadRoute(
                f"route {asked.route.name!r} asks for {asked.level!r}, and {reason}", asked.route.origin, fix
            )
        promised.append(weakest(given, asked.level))
    # Files of one sink are written in one way: what the most demanding of its routes asks for.
    return max(promised, key=LEVELS.index)


def _most(plan: Plan, outlet: Outlet, routes: list[PlannedRoute]) -> tuple[str, str, str]:
    """The highest level that messages of these routes can get in a sink, the reason why not a higher one, and a fix."""
    sink = outlet.sink
    if not includes(sink.delivery, EXACTLY_ONCE):
        reason = f"channel {outlet.channel!r} ends in {sink}, which gives {sink.delivery!r}"
        return sink.delivery, reason, f"{_DURABLE}, or write delivery={sink.delivery!r}"
    entries = [entry for entry in plan.entries if any(entry.route == route.name for route in routes)]
    for entry in entries:
        if not entry.source.replayable:
            reason = f"route {entry.route!r} reads {entry.source}, which cannot be read again after a crash"
            return BEST_EFFORT, reason, f"read a source that can, or write delivery={BEST_EFFORT!r}"
    for culprit in _disorder(plan, outlet.channel, entries, routes):
        return EXACTLY_ONCE, culprit, f"write delivery={EXACTLY_ONCE!r}, and order by a field where it is read"
    return sink.delivery, "", ""


def _disorder(plan: Plan, channel: str, entries: list[Entry], routes: list[PlannedRoute]) -> Iterator[str]:
    """Reasons why messages do not keep their order. A step that moves some messages moves all others of the app."""
    for route in routes:
        if route.waits:
            yield f"route {route.name!r} tries messages again later"
    moving = [stage for stage in plan.stages() if not stage.node.keeps_order]
    moving.sort(key=lambda stage: stage.node.stopping is not None)  # messages are stopped when all else is done
    if moving and isinstance(moving[-1].node, Resequence) and _passed(plan, channel, moving[-1]):
        return  # the order of its numbers, key by key
    for stage in moving:
        yield f"step {stage.node.name!r} of route {stage.route!r} does not keep the order"
    for entry in entries:
        if not entry.source.ordered:
            yield f"route {entry.route!r} reads {entry.source}, which Spark does not read in order"


def _passed(plan: Plan, channel: str, stage: Stage) -> bool:
    """Whether everything in the channel has come through the step."""
    for route in plan.routes:
        for number, sending in enumerate(route.stages):
            if channel not in sending.node.sends_to() or stage in route.stages[:number]:
                continue
            if not route.inflows or not all(_passed(plan, inflow.channel, stage) for inflow in route.inflows):
                return False
    return True


def _dead(plan: Plan) -> str:
    can = all(entry.source.replayable for entry in plan.entries)
    return weakest(plan.dead_letters.delivery, EXACTLY_ONCE) if can else BEST_EFFORT


def routes_before(plan: Plan, route: PlannedRoute) -> Iterator[PlannedRoute]:
    """The routes that messages of this route may have passed, and the route itself."""
    seen = {route.name}
    waiting = [route]
    while waiting:
        here = waiting.pop()
        yield here
        fresh = [other for other in _senders(plan, here) if other.name not in seen]
        seen.update(other.name for other in fresh)
        waiting += fresh


def _senders(plan: Plan, route: PlannedRoute) -> list[PlannedRoute]:
    channels = [channel for channel, reader in plan.readers.items() if reader == route.name]
    return [other for other in plan.routes if any(_sends(other, channel) for channel in channels)]


def _sends(route: PlannedRoute, channel: str) -> bool:
    return any(channel in stage.node.sends_to() for stage in route.stages)

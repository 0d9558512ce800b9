"""From an app to a plan: join the routes at their channels, then check everything a user can get wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from penstock.endpoints.base import Source
from penstock.errors import BadRoute, DuplicateName, PenstockError, RouteCycle, UnknownChannel, did_you_mean
from penstock.formats import Format
from penstock.patterns.aggregate import Aggregate
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.join import Join
from penstock.patterns.node import Node
from penstock.patterns.redelivery import ORIGINAL
from penstock.patterns.resequence import Resequence
from penstock.patterns.to import To
from penstock.plan import demand
from penstock.plan.delivery import deliver
from penstock.plan.plan import Entry, Inflow, Outlet, Plan, PlannedRoute, Scope, Stage
from penstock.plan.retrying import with_tries
from penstock.plan.stopping import check_stopping
from penstock.route.app import App
from penstock.route.route import Route
from penstock.schema import EMPTY, Struct, merge


def build(app: App) -> Plan:
    """The checked plan of an app; raises the first mistake it finds."""
    routes = [_named(route) for route in app.routes]
    _check_names(routes)
    readers = _readers(app, routes)
    _check_channels(app, routes, readers)
    draft = _Draft()
    for route in _in_order(routes, readers):
        _check_original(route)
        draft.add(route)
    outlets = tuple(Outlet(channel, app.sinks[channel], draft.arrivals(channel)) for channel in sorted(app.sinks))
    for outlet in outlets:
        _check_sink(app, routes, outlet)
    demand.check_written(app.dead_letters, "the dead letters end in", app.origin)
    plan = Plan(
        app.name, tuple(draft.entries), tuple(draft.routes), outlets, app.dead_letters, readers,
        error_budget=app.error_budget,
    )  # fmt: skip
    return demand.fill(deliver(check_stopping(plan)))


@dataclass
class _Draft:
    """The plan so far; the `wanted` part of scopes is filled in when all routes are known."""

    entries: list[Entry] = field(default_factory=list)
    routes: list[PlannedRoute] = field(default_factory=list)
    inflows: dict[str, list[Inflow]] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    scopes: int = 0

    def arrivals(self, channel: str) -> tuple[Inflow, ...]:
        return tuple(dict.fromkeys(self.inflows.get(channel, ())))

    def scope(self, schema: Struct, format: Format | None, joined: bool = False) -> Scope:
        self.scopes += 1
        return Scope(self.scopes - 1, schema, EMPTY, format, joined)

    def add(self, route: Route) -> None:
        inflows: tuple[Inflow, ...] = ()
        if isinstance(route.source, Source):
            with_format = _located(route, None, lambda: route.source.body_format)
            scope = self.scope(with_format.schema, with_format)
            self.entries.append(Entry(route.name, route.source, with_format, scope))
        else:
            inflows = tuple(inflow for channel in inputs(route) for inflow in self.arrivals(channel))
            scope = _located(route, None, lambda: self._joined(inflows))
        stages: list[Stage] = []
        here = scope
        parts = any(channel in self.parts for channel in inputs(route))
        for node in route.steps:
            _located(route, node, lambda node=node, parts=parts: _check_parts(node, parts))
            parts = node.messages != "n:1" and (parts or (node.messages == "1:n" and not node.ends))
            schema = _located(route, node, lambda node=node, here=here: demand.checked(node, here))
            after = self.scope(schema, None) if node.rewrites else here
            stages.append(Stage(route.name, node, here, after))
            for channel in node.sends_to():
                self.parts |= {channel} if parts else set()
                self.inflows.setdefault(channel, []).append(
                    Inflow(channel, here if node.ends or not node.rewrites else after)
                )
            here = after
        steps, policy = with_tries(stages, route.redelivery), route.redelivery
        self.routes.append(PlannedRoute(route.name, scope, inflows, steps, route.origin, policy, route.delivery))

    def _joined(self, inflows: tuple[Inflow, ...]) -> Scope:
        scopes = list(dict.fromkeys(inflow.scope for inflow in inflows))
        if len(scopes) == 1:
            return scopes[0]
        schema = EMPTY
        for scope in scopes:
            schema = merge(schema, scope.schema)
        # Bodies of one format and schema stay as they are; others can only go on as the fields they have.
        alike = all(scope.format == scopes[0].format for scope in scopes)
        return self.scope(schema, scopes[0].format if alike else None, joined=True)


def _check_parts(node: Node, parts: bool) -> None:
    """Check that steps which need parts of a split message have a splitter before them."""
    if isinstance(node, Aggregate) and node.needs_parts and not parts:
        what = "size='parts'" if node.by else "an aggregator without a key"
        raise BadRoute(f"{what} puts the parts of a split message together, and no splitter comes before it",
                       fix="give by=body.field, or split before")  # fmt: skip


def _check_original(route: Route) -> None:
    """Check that a message which restarts at the beginning of its route does nothing there a second time."""
    if route.redelivery is None or route.redelivery.message != ORIGINAL:
        return
    for node in route.steps:
        copies = node.messages not in ("1:1", "1:0|1") and not node.ends
        own_key = isinstance(node, Idempotent) and node.remember_failed
        if copies or own_key or isinstance(node, Resequence):
            why = "makes or merges messages" if copies else "takes a message that comes again for a duplicate"
            raise BadRoute(f"route {route.name!r} tries the original message again, but {node.name!r} {why}",
                           node.origin, "write message='current', or do that step in a route before")  # fmt: skip


def _located(route: Route, node: Node | None, action):  # type: ignore[no-untyped-def]
    """Run a check; an error that does not say where gets the step's name and line."""
    try:
        return action()
    except PenstockError as error:
        step = f", step {node.name!r}" if node else ""
        origin = error.origin or (node.origin if node else route.origin)
        raise type(error)(f"route {route.name!r}{step}: {error.what}", origin, error.fix) from None


def inputs(route: Route) -> tuple[str, ...]:
    """The channels a route reads."""
    if isinstance(route.source, Join):
        return route.source.sources
    return (route.source,) if isinstance(route.source, str) else ()


def _named(route: Route) -> Route:
    """Steps without a name are called after their verb, numbered from the second on."""
    first = (replace(route.source, origin=route.origin),) if isinstance(route.source, Join) else ()
    taken = Counter(node.name for node in route.steps if node.name)
    for name, count in taken.items():
        if count > 1:
            second = [node for node in route.steps if node.name == name][1]
            raise DuplicateName(
                f"route {route.name!r} has two steps named {name!r}", second.origin, "rename one of them"
            )
    named: list[Node] = []
    used = set(taken)
    for node in (*first, *route.steps):
        name = node.name or next(candidate for candidate in _candidates(node) if candidate not in used)
        used.add(name)
        named.append(replace(node, name=name))
    return replace(route, steps=tuple(named))


def _candidates(node: Node) -> Iterator[str]:
    base = node.verb
    yield base
    for number in range(2, 10_000):
        yield f"{base}-{number}"


def _check_names(routes: list[Route]) -> None:
    seen: dict[str, Route] = {}
    for route in routes:
        if route.name in seen:
            raise DuplicateName(f"two routes are named {route.name!r}", route.origin, "rename one of them")
        seen[route.name] = route
        if not route.steps or not route.steps[-1].ends:
            raise BadRoute(f"the messages of route {route.name!r} go nowhere after its last step", route.origin,
                           'end it with .to("channel"), .choice, .balance, .multicast or .recipients')  # fmt: skip


def _readers(app: App, routes: list[Route]) -> dict[str, str]:
    readers: dict[str, str] = {}
    for route in routes:
        for channel in inputs(route):
            if channel in readers:
                raise DuplicateName(f"channel {channel!r} is read by routes {readers[channel]!r} and {route.name!r}",
                                    route.origin, "multicast to two channels, one for each route")  # fmt: skip
            if channel in app.sinks:
                raise DuplicateName(f"channel {channel!r} has a sink and is read by route {route.name!r}",
                                    route.origin, "tap it into a second channel")  # fmt: skip
            readers[channel] = route.name
    return readers


def _check_channels(app: App, routes: list[Route], readers: dict[str, str]) -> None:
    known = {*readers, *app.sinks}
    sent: set[str] = set()
    for route in routes:
        for node in route.steps:
            for channel in node.sends_to():
                sent.add(channel)
                if channel not in known:
                    raise UnknownChannel(f"route {route.name!r} sends to channel {channel!r}, which no route reads",
                                         node.origin, f"{did_you_mean(channel, known)}; or give it a sink")  # fmt: skip
    for route in routes:
        for channel in inputs(route):
            if channel not in sent:
                raise UnknownChannel(f"route {route.name!r} reads channel {channel!r}, which no route sends to",
                                     route.origin, did_you_mean(channel, sent))  # fmt: skip
    for channel in app.sinks:
        if channel not in sent:
            raise UnknownChannel(f"the sink of channel {channel!r} gets nothing: no route sends there",
                                 app.sink_origins.get(channel, app.origin), did_you_mean(channel, sent))  # fmt: skip


def _check_sink(app: App, routes: list[Route], outlet: Outlet) -> None:
    steps = (
        node for route in routes for node in route.steps if isinstance(node, To) and node.channel == outlet.channel
    )
    given = next((node.origin for node in steps if node.sink is outlet.sink), app.origin)
    origin = app.sink_origins.get(outlet.channel, given)
    demand.check_written(outlet.sink, f"channel {outlet.channel!r} ends in", origin)
    try:
        demand.check_sink(outlet)
    except PenstockError as error:
        raise type(error)(error.what, error.origin or origin, error.fix) from None


def _in_order(routes: list[Route], readers: dict[str, str]) -> list[Route]:
    by_name = {route.name: route for route in routes}
    before: dict[str, list[str]] = {route.name: [] for route in routes}
    for route in routes:
        for node in route.steps:
            for channel in node.sends_to():
                if channel in readers:
                    before[readers[channel]].append(route.name)
    try:
        return [by_name[name] for name in TopologicalSorter(before).static_order()]
    except CycleError as error:
        loop = error.args[1]
        raise RouteCycle(f"messages would go round for ever: {' -> '.join(reversed(loop))}", by_name[loop[0]].origin,
                         "send them to a channel that leads out, or stop with a filter in front") from None  # fmt: skip

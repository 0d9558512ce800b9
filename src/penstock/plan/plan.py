"""A plan: routes in the order messages meet them, with the schema at every step and the fields that are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.budget import Budget
from penstock.delivery import BEST_EFFORT
from penstock.endpoints.base import Sink, Source
from penstock.errors import Origin
from penstock.expr.nodes import Expr
from penstock.formats import Format
from penstock.patterns.node import Node
from penstock.patterns.redelivery import Redelivery
from penstock.schema import Struct


@dataclass(frozen=True, slots=True)
class Scope:
    """One version of the body on its way: a source makes the first, and every step that rewrites bodies makes another.

    `wanted` is the part of the schema that steps and sinks read. `format` is that of the source while the bytes are the
    original ones, and None once the body was rewritten. `joined` bodies come from several scopes.
    """

    number: int
    schema: Struct
    wanted: Struct
    format: Format | None
    joined: bool = False

    @property
    def raw(self) -> bool:
        return self.format is not None


@dataclass(frozen=True, slots=True)
class Stage:
    """One step in its place in a route; bodies come with the scope `scope` and leave with the scope `after`.

    `at_once` is the redelivery policy if the step itself tries failed messages again, so that none has to wait.
    """

    route: str
    node: Node
    scope: Scope
    after: Scope
    at_once: Redelivery | None = None

    @property
    def title(self) -> str:
        return f"{self.route}.{self.node.name}"

    def tries(self, error: str) -> int:
        """How many more tries at once a message gets that fails with this error."""
        return self.at_once.attempts if self.at_once is not None and self.at_once.covers(error, 1) else 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A source, the scope of its bodies, and the XPaths and JSONPaths that only its decoder can follow."""

    route: str
    source: Source
    format: Format
    scope: Scope
    paths: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Inflow:
    """A channel that a route or a sink reads, and the scope of its bodies."""

    channel: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class PlannedRoute:
    name: str
    scope: Scope
    inflows: tuple[Inflow, ...]
    stages: tuple[Stage, ...]
    origin: Origin | None
    redelivery: Redelivery | None = None
    delivery: str | None = None

    @property
    def merges(self) -> bool:
        """Whether bodies of different schemas meet here and become one."""
        return any(inflow.scope != self.scope for inflow in self.inflows)

    @property
    def waits(self) -> bool:
        """Whether messages that fail here may be tried again in a later batch."""
        return self.redelivery is not None and any(stage.at_once is None for stage in self.stages)

    @property
    def restarts(self) -> bool:
        """Whether messages that are tried again in a later batch come back to the start of the route."""
        return self.waits and self.redelivery is not None and self.redelivery.restarts


@dataclass(frozen=True, slots=True)
class Outlet:
    """A channel that ends in a sink, the scopes that arrive there, and the delivery level that they are promised."""

    channel: str
    sink: Sink
    inflows: tuple[Inflow, ...]
    delivery: str = BEST_EFFORT


@dataclass(frozen=True, eq=False)
class Plan:
    name: str
    entries: tuple[Entry, ...]
    routes: tuple[PlannedRoute, ...]
    outlets: tuple[Outlet, ...]
    dead_letters: Sink
    readers: Mapping[str, str]
    dead_delivery: str = BEST_EFFORT
    error_budget: Budget | None = None

    @property
    def remembers(self) -> bool:
        """Whether a step keeps something from one batch to the next."""
        return any(stage.node.stateful for stage in self.stages()) or any(route.waits for route in self.routes)

    def stages(self) -> tuple[Stage, ...]:
        return tuple(stage for route in self.routes for stage in route.stages)

    def route(self, name: str) -> PlannedRoute:
        return next(route for route in self.routes if route.name == name)

    def reader(self, route: str, scope: Scope) -> Entry:
        """How bodies of a scope are read that are as they came: as the source does it whose scope it is."""
        assert scope.format is not None
        paths = next((entry.paths for entry in self.entries if entry.scope.number == scope.number), ())
        return Entry(route, self.entries[0].source, scope.format, scope, paths)

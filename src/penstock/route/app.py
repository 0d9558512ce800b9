"""An app: routes that meet at named channels, and the sinks that the other channels end in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.endpoints.base import Sink
from penstock.endpoints.files import Files
from penstock.errors import BadRoute, DuplicateName, Origin, caller
from penstock.route.route import Route

if TYPE_CHECKING:
    from penstock.plan.plan import Plan
    from penstock.reference.run import Trace


@dataclass(frozen=True, eq=False)
class App:
    """Routes, sinks by channel, and where dead letters go (a directory of JSON lines unless you say otherwise)."""

    name: str
    routes: tuple[Route, ...]
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    dead_letters: Sink = Files("dead-letters")
    origin: Origin | None = field(default_factory=caller, repr=False)
    sink_origins: Mapping[str, Origin] = field(default_factory=dict, repr=False)

    def __init__(
        self, name: str, *routes: Route, sinks: Mapping[str, Sink] | None = None, dead_letters: Sink | None = None
    ) -> None:
        origin = caller()
        if not routes or not all(isinstance(route, Route) for route in routes):
            raise BadRoute(f"app {name!r} needs routes", origin, 'write App("name", Route(...), Route(...))')
        bound = dict(sinks or {})
        for route in routes:
            for step in route.steps:
                sink = getattr(step, "sink", None)
                if sink is not None and bound.setdefault(step.channel, sink) is not sink:  # type: ignore[attr-defined]
                    raise DuplicateName(f"channel {step.channel!r} has two sinks", step.origin)  # type: ignore[attr-defined]
        for key, value in {"name": name, "routes": tuple(routes), "sinks": bound, "origin": origin, "sink_origins": {},
                           "dead_letters": dead_letters or Files(f"dead-letters/{name}")}.items():  # fmt: skip
            object.__setattr__(self, key, value)

    @cached_property
    def plan(self) -> Plan:
        """The checked graph; raises whatever is wrong with the routes."""
        from penstock.plan.build import build

        return build(self)

    def explain(self) -> str:
        """The plan as stable text."""
        from penstock.plan.explain import explain

        return explain(self.plan)

    def trace(self, message: object) -> Trace:
        """The path that one message takes, step by step, in plain Python."""
        from penstock.reference.run import trace

        return trace(self.plan, message)

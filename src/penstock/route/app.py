"""An app: routes that meet at named channels, and the sinks that the other channels end in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.budget import check_budget
from penstock.endpoints.base import Sink
from penstock.endpoints.files import Files
from penstock.errors import BadRoute, DuplicateName, Origin, caller
from penstock.patterns.to import To
from penstock.route.route import Route

if TYPE_CHECKING:
    from penstock.plan.plan import Plan
    from penstock.reference.run import Trace


class App:
    """Routes, sinks by channel, and where dead letters go (a directory of JSON lines unless you say otherwise).

    `error_budget` is how many dead letters a batch may have: a number, or a share like 0.01. With more of them nothing
    of the batch is published, and the run stops.
    """

    def __init__(
        self,
        name: str,
        *routes: Route,
        sinks: Mapping[str, Sink] | None = None,
        dead_letters: Sink | None = None,
        error_budget: float | None = None,
    ) -> None:
        self.name = name
        self.routes = routes
        self.origin = caller()
        self.dead_letters = dead_letters or Files(f"dead-letters/{name}")
        self.sink_origins: dict[str, Origin | None] = {}
        if not name or name != os.path.basename(name) or name.startswith((".", "_")):
            raise BadRoute(f"{name!r} is not an app name", self.origin, "it names files: use letters, digits, - and _")
        if not routes or not all(isinstance(route, Route) for route in routes):
            raise BadRoute(f"app {name!r} needs routes", self.origin, 'write App("name", Route(...), Route(...))')
        try:
            self.error_budget = check_budget(error_budget)
        except BadRoute as error:
            raise BadRoute(f"app {name!r}: {error.what}", self.origin, error.fix) from None
        self.sinks = dict(sinks or {})
        for step in (step for route in routes for step in route.steps if isinstance(step, To)):
            if step.sink is not None and self.sinks.setdefault(step.channel, step.sink) is not step.sink:
                raise DuplicateName(f"channel {step.channel!r} has two sinks", step.origin, "give it one of them")

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

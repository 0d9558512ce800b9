"""Which messages of an app may have to wait for a later batch although nothing is missing for them."""

from __future__ import annotations

from penstock.plan.failing import decides_later
from penstock.plan.plan import Plan


def undecided(plan: Plan) -> frozenset[str]:
    """The receivers, by title, at which a message may have to wait for the fate of the first one with its key."""
    return frozenset(stage.title for stage in plan.stages() if decides_later(plan, stage))


def waits(plan: Plan) -> bool:
    return any(route.waits for route in plan.routes) or bool(undecided(plan))


def counts_tries(plan: Plan) -> bool:
    """Whether it matters how often a message was tried."""
    return any(route.redelivery is not None for route in plan.routes)

"""Whether messages of an app may wait for a later batch, for another try or until the fate of another is known."""

from __future__ import annotations

from penstock.plan.failing import decides_later
from penstock.plan.plan import Plan


def undecided(plan: Plan) -> frozenset[str]:
    """The receivers, by title, where a message may wait until it is known whether the first one with its key fails."""
    return frozenset(stage.title for stage in plan.stages() if decides_later(plan, stage))


def waits(plan: Plan) -> bool:
    return any(route.waits for route in plan.routes) or bool(undecided(plan))


def counts_tries(plan: Plan) -> bool:
    """Whether some route tries messages again, so that tries have to be counted."""
    return any(route.redelivery is not None for route in plan.routes)

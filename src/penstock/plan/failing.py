"""Which steps may make a dead letter of a message that reached them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.expr.nodes import Function
from penstock.patterns.balance import STICKY, Balance
from penstock.patterns.node import DEAD, Node
from penstock.patterns.recipients import Recipients
from penstock.patterns.script import Script
from penstock.plan.plan import Plan, Stage


def may_fail(node: Node) -> bool:
    """A function of the user's, a value that must be there, a key that must, or a recipient that must be known."""
    keyed = getattr(node, "invalid", None) == DEAD
    return calls(node) or needs_value(node) or keyed or isinstance(node, (Script, Recipients))


def calls(node: Node) -> bool:
    """Whether an expression of the step is a function of the user's."""
    return any(isinstance(part, Function) for expression in node.expressions() for part in expression.walk())


def needs_value(node: Node) -> bool:
    """Whether a message without some value is a dead letter here."""
    return getattr(node, "missing", None) == DEAD or (isinstance(node, Balance) and node.strategy == STICKY)


def may_fail_after(plan: Plan, stage: Stage) -> bool:
    """Whether a message that passed this step may still become a dead letter in the same batch."""
    return any(may_fail(later.node) for later in stages_after(plan, stage))


def stages_after(plan: Plan, stage: Stage) -> Iterator[Stage]:
    """The steps that a message, or something made of it, may come to after this one."""
    return _after(plan, stage, set())


def _after(plan: Plan, stage: Stage, seen: set[str]) -> Iterator[Stage]:
    route = next(route for route in plan.routes if route.name == stage.route)
    rest = route.stages[route.stages.index(stage) + 1 :]
    yield from rest
    channels = [channel for each in (stage, *rest) for channel in each.node.sends_to()]
    for channel in channels:
        reader = plan.readers.get(channel)
        if reader is not None and reader not in seen:
            seen.add(reader)
            first = next(route for route in plan.routes if route.name == reader).stages[0]
            yield first
            yield from _after(plan, first, seen)

"""Which steps come behind a step, and whether a message may become a dead letter there."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.patterns.idempotent import Idempotent
from penstock.plan.plan import Plan, Stage


def may_fail_after(plan: Plan, stage: Stage) -> bool:
    """Whether a message that passed this step may still become a dead letter in the same batch."""
    return any(later.node.may_fail for later in stages_after(plan, stage))


def decides_later(plan: Plan, stage: Stage) -> bool:
    """Whether it is a receiver that forgets the keys of failed messages, and a message may fail behind it."""
    return isinstance(stage.node, Idempotent) and not stage.node.remember_failed and may_fail_after(plan, stage)


def stages_after(plan: Plan, stage: Stage) -> Iterator[Stage]:
    """The steps that a message, or something made of it, may come to after this one."""
    return _after(plan, stage, set())


def _after(plan: Plan, stage: Stage, seen: set[str]) -> Iterator[Stage]:
    route = plan.route(stage.route)
    rest = route.stages[route.stages.index(stage) + 1 :]
    yield from rest
    channels = [channel for each in (stage, *rest) for channel in each.node.sends_to()]
    for channel in channels:
        reader = plan.readers.get(channel)
        if reader is not None and reader not in seen:
            seen.add(reader)
            first = plan.route(reader).stages[0]
            yield first
            yield from _after(plan, first, seen)

"""Where a replayed dead letter meets steps that remember: receivers that forgot its key, and steps it comes to."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.message import DeadLetter
from penstock.patterns.idempotent import Idempotent
from penstock.plan.plan import Plan, Stage


def forgotten_by(plan: Plan, letter: DeadLetter, stage: Stage) -> Stage:
    """Where a message goes on that failed at `stage`: there, or at the first receiver before it that forgot its key.

    If the body that came to that receiver is not kept, it goes on at the last step before whose body is.

    A receiver forgets the key of a message that failed, so whoever goes on behind it would be unknown to it: a second
    message of that key would pass. Where a step in between has made copies, has an order of its own or has kept the
    key, going back would repeat what was done, or end there: then the message goes on behind it. A message that failed
    at a later try has failed in a later batch than the one in which it was let through: its key is kept.
    """
    route = plan.route(stage.route)
    if route.waits and letter.attempt > 1:
        return stage
    found, forgot = stage, False
    for before in _way_back(plan, stage):
        node = before.node
        if isinstance(node, Idempotent) and not node.remember_failed:
            forgot = True
        elif node.stateful or node.messages not in ("1:1", "1:0|1"):
            break
        if forgot and (before.scope.format is not None or before.scope.number == stage.scope.number):
            found, forgot = before, False
    return found


def _way_back(plan: Plan, stage: Stage) -> Iterator[Stage]:
    """The steps that a message has passed before, as far as that can be told, the last one first."""
    while True:
        route = plan.route(stage.route)
        yield from reversed(route.stages[: route.stages.index(stage)])
        channels = [channel for channel, reader in plan.readers.items() if reader == route.name]
        senders = [one for one in plan.stages() if any(channel in one.node.sends_to() for channel in channels)]
        if len(senders) != 1:
            return
        stage = senders[0]
        yield stage


def remembering(plan: Plan, route: str, stage: Stage | None) -> Stage | None:
    """The first step with memory to which a message may come that goes on at this step, or at the start."""
    routes = {one.name: one for one in plan.routes}
    waiting, seen = [(route, stage)], {route}
    while waiting:
        name, first = waiting.pop(0)
        stages = routes[name].stages
        for one in stages[stages.index(first) if first is not None else 0 :]:
            if one.node.stateful:
                return one
            readers = [plan.readers[channel] for channel in one.node.sends_to() if channel in plan.readers]
            waiting += [(reader, None) for reader in readers if reader not in seen]
            seen.update(readers)
    return None

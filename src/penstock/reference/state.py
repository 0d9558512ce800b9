"""The meaning of the patterns that remember: one object per step, which lives as long as the run.

In every batch the runner calls `again`, `due`, `accept` for each message in the order of its source, then `end`, and
`forget_failed` when all steps are through. A run that ends calls `stop`. What happens to a message is returned as an
effect; `held` says how many messages wait.
"""

from __future__ import annotations

from typing import Any

from penstock.expr.nodes import Expr
from penstock.message import Message
from penstock.patterns.node import DEAD
from penstock.plan.plan import Stage
from penstock.reference.effects import Dead, Effect, Filtered
from penstock.reference.steps import Failure, call_functions, value_of

Key = tuple[Any, ...]


class State:
    """What a step remembers; the base does nothing, so that each pattern says only what it does."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    @property
    def held(self) -> int:
        return 0

    @property
    def undecided(self) -> bool:
        """Messages wait only for the next batch, not for time or other messages."""
        return False

    def again(self) -> list[Message]:
        """Those that have waited for this batch: they come to the step once more, in their order among all others."""
        return []

    def due(self, now: float) -> list[Effect]:
        return []

    def accept(self, message: Message, now: float) -> list[Effect]:
        """A failure is a dead letter, never an exception."""
        try:
            call_functions(self.stage, message)
            return self._accept(message, now)
        except Failure as failure:
            return [failure.dead]

    def _accept(self, message: Message, now: float) -> list[Effect]:
        raise NotImplementedError

    def end(self, now: float) -> list[Effect]:
        return []

    def forget_failed(self, failed: set[tuple[Key, int]]) -> None:
        """The batch is over: forget the keys under which messages were let through that failed."""

    def stop(self, policy: str, now: float) -> list[Effect]:
        """The run is over; `policy` is what happens to what waits, unless the step says otherwise."""
        return []

    def _key(self, key: tuple[Expr, ...], message: Message) -> Key:
        return tuple(value_of(self.stage, part, message) for part in key)


def refused(policy: str, error: str, reason: str, message: Message) -> list[Effect]:
    return [Dead(error, reason, message) if policy == DEAD else Filtered()]

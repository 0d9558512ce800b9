"""Stop the later parts of a split message, or copies of a multicast one, after too many earlier ones have failed."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.budget import is_exceeded
from penstock.message import DeadLetter, Message
from penstock.plan.plan import Stage
from penstock.plan.stopping import STOPPED, allowed, reason_of
from penstock.reference.effects import Continue, Dead, Effect, Send


@dataclass
class Family:
    stage: Stage
    members: int
    failed: int = 0
    reason: str = ""

    def add(self, number: int, letters: list[DeadLetter]) -> None:
        """Note what died of a member."""
        if letters and not self.failed and self.stage.node.stopping is not None:
            first = letters[0]
            failure = first.error, first.route, first.step, first.reason
            self.reason = reason_of(self.stage) % (number + 1, self.members, *failure)
        self.failed += bool(letters)

    def stopped(self, message: Message, effect: Effect) -> Dead | None:
        """What becomes of the next member instead of this effect, if enough have failed before it."""
        if self.stage.node.stopping is None or not is_exceeded(allowed(self.stage), self.failed, self.members):
            return None
        return Dead(STOPPED, self.reason, effect.message if isinstance(effect, (Continue, Send)) else message)

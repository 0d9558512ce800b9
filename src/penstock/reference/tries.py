"""Count the tries of a message, and make it ready for the next one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.message import Message
from penstock.patterns.redelivery import REDELIVERED
from penstock.plan.plan import PlannedRoute


@dataclass(frozen=True)
class Retry:
    """A message that failed, and where and when it is tried again."""

    due: float
    route: PlannedRoute
    index: int
    message: Message


def tries(message: Message, route: str) -> int:
    """The number of the try that begins when a message comes to a route."""
    where, count = message.journey.tried
    return count + 1 if where == route else 1


def again(failed: Message, form: Message) -> Message:
    """A message that failed, for its next try, in the form that is tried."""
    attempt, original = failed.journey.attempt, failed.journey.original
    journey = replace(form.journey, attempt=attempt + 1, original=original, tried=("", 0))
    return replace(form, headers={**form.headers, REDELIVERED: str(attempt)}, journey=journey)

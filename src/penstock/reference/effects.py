"""The effects that a step can have on a message."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.message import Message


@dataclass(frozen=True, slots=True)
class Continue:
    """On to the next step of the route; `note` says what brought it about."""

    message: Message
    note: str = ""


@dataclass(frozen=True, slots=True)
class Send:
    """Into a named channel."""

    channel: str
    message: Message


@dataclass(frozen=True, slots=True)
class Filtered:
    """Not wanted any further; counted."""


@dataclass(frozen=True, slots=True)
class Dead:
    """Cannot go on, and why. `message` is set where it is not the one that just arrived."""

    error: str
    reason: str
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Waits in the state of the step."""

    note: str = ""


Effect = Continue | Send | Filtered | Dead | Held


def numbered(effect: Effect, number: int) -> Effect:
    """One of several messages that a step made; they have an order among themselves."""
    if not isinstance(effect, (Continue, Send)):
        return effect
    journey = effect.message.journey
    journey = replace(journey, order=(*journey.order, number))
    return replace(effect, message=replace(effect.message, journey=journey))

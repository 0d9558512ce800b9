"""What a step can do with a message."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.message import Message


@dataclass(frozen=True, slots=True)
class Continue:
    """On to the next step of the route."""

    message: Message


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
    """Cannot go on, and why."""

    error: str
    reason: str


Effect = Continue | Send | Filtered | Dead

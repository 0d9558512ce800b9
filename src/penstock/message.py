"""One message: a body, headers, attachments, and where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a source found the message: the same on every replay."""

    topic: str = ""
    partition: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class Lineage:
    """A part of a split message knows its parent, its index and the number of parts."""

    parent: str
    index: int
    count: int


@dataclass(frozen=True, slots=True)
class Journey:
    """What the reference notes about a message on its way.

    `order` is its place: source, topic, partition, offset, then the number of the part or copy at every step that
    made several. `attempt` is the number of the try in this route, `original` the message as it came to the route.
    `admitted` has the keys under which idempotent receivers let it through: step, key, batch. `tried` says how often a
    dead letter that comes again was tried before, in the route where it died.
    """

    order: tuple[Any, ...] = ()
    attempt: int = 1
    original: Message | None = None
    admitted: tuple[tuple[str, Any, int], ...] = ()
    tried: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class Message:
    """`MSG := (B, H, A)` plus identity.

    `raw` holds the bytes as they arrived. `fields` holds the decoded body once a step has read or rewritten it;
    when it is set by a rewriting step, `raw` is no longer what would be sent.
    """

    id: str
    raw: bytes
    fields: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    attachments: Mapping[str, bytes] = field(default_factory=dict)
    position: Position = Position()
    time: datetime = EPOCH
    lineage: Lineage | None = None
    rewritten: bool = False
    journey: Journey = field(default=Journey(), compare=False, repr=False)

    def with_fields(self, fields: Mapping[str, Any]) -> Message:
        """The same message with another body."""
        return replace(self, fields=fields, rewritten=True)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not go on, and why; its `fields` are the body as it came to that step."""

    message: Message
    route: str
    step: str
    error: str
    reason: str
    attempt: int = 1

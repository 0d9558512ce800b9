"""Messages in a list, in and out: what tests and notebooks use."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from penstock.endpoints.base import Sink, Source
from penstock.errors import BadEndpoint
from penstock.formats import Format, Text
from penstock.message import Message, Position
from penstock.values import as_json


def as_messages(values: Iterable[object], topic: str = "memory", first: int = 0) -> tuple[Message, ...]:
    """Messages from bytes, text, dicts (written as JSON) or messages; position and id count from `first`."""
    return tuple(_as_message(value, Position(topic, 0, index)) for index, value in enumerate(values, first))


def _as_message(value: object, position: Position) -> Message:
    match value:
        case Message():
            return replace(value, position=position, id=value.id or str(position))
        case bytes():
            raw = value
        case str():
            raw = value.encode("utf-8", "surrogatepass")
        case dict():
            raw = json.dumps(value, ensure_ascii=False, default=as_json).encode("utf-8", "surrogatepass")
        case _:
            raise BadEndpoint(f"{value!r} is not a message", fix="give bytes, text, a dict or a Message")
    return Message(str(position), raw, position=position)


@dataclass(frozen=True, slots=True)
class Memory(Source, Sink):
    """As a source: these messages. As a sink: the run's result keeps what arrives."""

    messages: tuple[Any, ...] = field(default=(), repr=False)
    format: Format | None = None
    partitions: int = 1

    kind: ClassVar[str] = "memory"
    guarantee: ClassVar[str] = "the result of the run holds each message once"

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        if self.partitions < 1:
            raise BadEndpoint(f"partitions={self.partitions}: at least 1 is needed")

    @property
    def body_format(self) -> Format:
        return self.format or Text()

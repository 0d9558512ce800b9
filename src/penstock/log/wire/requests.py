"""What client and server say to each other over TCP: one small structure each, written as MessagePack.

Bulk data (frames of messages) is not in here; it follows its structure in the same frame, see `tcp.py`. A field that a
later version adds has a default, and one that is not known is skipped, so both sides can be updated in any order.
"""

from __future__ import annotations

from typing import Any

import msgspec

VERSION = 1
"""Of the protocol. A server refuses a client of a version that it does not speak."""


class Said(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """One request or reply; its tag is the name of its class."""


GREETING = b"\r\n\r\n"
"""The bulk of `Hello`, for a server of another kind, which waits for the end of a line before it says what it is."""


class Hello(Said, frozen=True):
    """The first request of a connection."""

    version: int = VERSION
    token: str = ""
    client: str = ""


class Topics(Said, frozen=True):
    pass


class Create(Said, frozen=True):
    topic: str
    partitions: int = 1


class Push(Said, frozen=True):
    """The bulk is one frame."""

    topic: str
    partition: int
    acknowledge: str = "fsynced"


class Output(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is done to messages before they leave: keep those `where` something is true, make `select` of their fields.

    `schema` gives the types of fields that the expressions do not show.
    """

    where: str = ""
    select: tuple[tuple[str, str], ...] = ()
    schema: str = ""


class Pull(Said, frozen=True):
    """Messages from `offset` on. With `wait`, a server that has none yet answers after at most so many seconds.

    With `durable`, only messages that cannot be lost any more.
    """

    topic: str
    partition: int
    offset: int
    most_bytes: int = 1 << 20
    most_messages: int = 0
    wait: float = 0.0
    durable: bool = False
    output: Output | None = None


class AskEnds(Said, frozen=True):
    topic: str
    partition: int


class AskOffset(Said, frozen=True):
    """The first offset whose message is not older than `time`, in microseconds since 1970."""

    topic: str
    partition: int
    time: int


class Commit(Said, frozen=True):
    group: str
    topic: str
    partition: int
    offset: int


class AskCommitted(Said, frozen=True):
    group: str
    topic: str
    partition: int


class AskProducer(Said, frozen=True):
    """An identity for a producer; under a name that was used before, the same id and the next epoch."""

    name: str = ""


class AskNumber(Said, frozen=True):
    """How far a producer has come in a partition."""

    topic: str
    partition: int
    producer: int


class AskStatistics(Said, frozen=True):
    pass


Request = (
    Hello | Topics | Create | Push | Pull | AskEnds | AskOffset | Commit | AskCommitted | AskProducer | AskNumber
    | AskStatistics
)


class Welcome(Said, frozen=True):
    """Replies to `Hello`. `credit` is how many bytes of pushes may be unanswered; `largest` how long a frame may be."""

    version: int
    credit: int
    largest: int
    server: str = ""


class TopicList(Said, frozen=True):
    """Names and how many partitions each has."""

    topics: dict[str, int]


class Done(Said, frozen=True):
    pass


class Pushed(Said, frozen=True):
    """Where the messages are, and how safe: the mode that was reached. `credit` is given back."""

    first: int
    count: int
    acknowledged: str
    duplicate: bool = False
    credit: int = 0


class Pulled(Said, frozen=True):
    """The bulk is frames of these `sizes`.

    `next` is where to go on, `end` where the log ended, `level` which one answered (0 is the store), `examined` how
    many messages the server looked at.
    """

    next: int
    end: int
    sizes: tuple[int, ...] = ()
    level: int = 0
    examined: int = 0


class EndsAre(Said, frozen=True):
    first: int
    next: int
    durable: int


class OffsetIs(Said, frozen=True):
    offset: int | None


class ProducerIs(Said, frozen=True):
    producer: int
    epoch: int


class NumberIs(Said, frozen=True):
    """The epoch is -1 for a producer that is not known there."""

    epoch: int
    next: int = 0


class StatisticsAre(Said, frozen=True):
    values: dict[str, Any]


class Refused(Said, frozen=True):
    """Why a request was not done. `number` is one of `errors.Number`; `credit` is given back."""

    number: int
    what: str
    fix: str = ""
    credit: int = 0


Reply = (
    Welcome | TopicList | Done | Pushed | Pulled | EndsAre | OffsetIs | ProducerIs | NumberIs | StatisticsAre | Refused
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Request)
_replies: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Reply)


def written(said: Said) -> bytes:
    return _encoder.encode(said)


def request(head: bytes | memoryview) -> Request:
    """Raises `msgspec.MsgspecError` for what is no request."""
    found: Request = _requests.decode(head)
    return found


def reply(head: bytes | memoryview) -> Reply:
    found: Reply = _replies.decode(head)
    return found

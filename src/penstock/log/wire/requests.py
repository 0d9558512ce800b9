"""What client and server say to each other over TCP: one small structure each, written as MessagePack.

Bulk data (frames of messages) is not in here; it follows its structure in the same frame, see `tcp.py`. A field that a
later version adds has a default, and one that is not known is skipped, so both sides can be updated in any order.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from penstock.log.wire.tcp import NotAFrame

_EXACT = 2**63 - 1
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_EXACT)]
Producer: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Moment: TypeAlias = Annotated[int, msgspec.Meta(ge=-_EXACT, le=_EXACT)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Not infinite, and not NaN, which is neither more nor less than anything."""

Session: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]

VERSION = 1
"""Of the protocol. A server refuses a client of a version that it does not speak."""


class Said(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """One request or reply; its tag is the name of its class."""


GREETING = b"\r\n\r\n"
"""The bulk of `Hello`, for a server of another kind, which waits for the end of a line before it says what it is."""


class Hello(Said, frozen=True):
    """The first request of a connection. An earlier one of the same `session` is ended: what it sent is not read."""

    version: int = VERSION
    token: str = ""
    client: str = ""
    session: Session = ""


class Topics(Said, frozen=True):
    """The topic with this `name`; or those whose names come after `after`, at most so many, and as many as fit.

    If there is none with the name, the answer is as without one.
    """

    name: str = ""
    after: str = ""
    most: int = 0


class Create(Said, frozen=True):
    topic: str
    partitions: Whole = 1


class Delete(Said, frozen=True):
    """Remove a topic and its messages, for good; not if another one has its name now."""

    topic: str
    identity: str = ""


class Push(Said, frozen=True):
    """The bulk is one frame. With the `identity` of a topic, here and elsewhere, another of its name is not meant."""

    topic: str
    partition: Whole
    acknowledge: str = "fsynced"
    identity: str = ""


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
    partition: Whole
    offset: Whole
    most_bytes: Whole = 1 << 20
    most_messages: Whole = 0
    wait: Seconds = 0.0
    durable: bool = False
    output: Output | None = None
    identity: str = ""


class AskEnds(Said, frozen=True):
    topic: str
    partition: Whole
    identity: str = ""


class AskOffset(Said, frozen=True):
    """The first offset whose message is not older than `time`, in microseconds since 1970."""

    topic: str
    partition: Whole
    time: Moment


class Commit(Said, frozen=True):
    group: str
    topic: str
    partition: Whole
    offset: Whole
    identity: str = ""


class AskCommitted(Said, frozen=True):
    group: str
    topic: str
    partition: Whole
    identity: str = ""


class AskProducer(Said, frozen=True):
    """An identity for a producer; under a name that was used before, the same id and the next epoch."""

    name: str = ""


class AskNumber(Said, frozen=True):
    """How far a producer has come in a partition."""

    topic: str
    partition: Whole
    producer: Producer


class AskStatistics(Said, frozen=True):
    """All numbers of the server, and those of the partitions behind one: at most so many, and as many as fit."""

    after: tuple[str, int] | None = None
    most: int = 0


Request = (
    Hello | Topics | Create | Delete | Push | Pull | AskEnds | AskOffset | Commit | AskCommitted | AskProducer
    | AskNumber | AskStatistics
)


class Welcome(Said, frozen=True):
    """Replies to `Hello`. `credit` is how many bytes of pushes may be unanswered; `largest` how long a frame may be."""

    version: int
    credit: int
    largest: int
    server: str = ""


class TopicList(Said, frozen=True):
    """Names and how many partitions each has, and in the same order their identities. Are there `more` behind them?"""

    topics: dict[str, int]
    identities: tuple[str, ...] = ()
    more: bool = False


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
    """`next` is the last partition in it, if there are others behind."""

    values: dict[str, Any]
    next: tuple[str, int] | None = None


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
    try:
        found: Request = _requests.decode(head)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None
    return found


def reply(head: bytes | memoryview) -> Reply:
    """Raises `NotAFrame` for what is no reply: nobody can tell what the server means."""
    try:
        found: Reply = _replies.decode(head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotAFrame(f"this is no reply: {error}", None, "is the server newer than this client?") from None
    return found

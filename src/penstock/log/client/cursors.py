"""The position of a consumer in every partition it reads. No sockets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from penstock.log.errors import UnknownTopic
from penstock.log.frame import Frame
from penstock.log.headers import read_headers
from penstock.log.records import Topic
from penstock.log.wire.requests import Output, Pull, Pulled

FIRST, NEXT = "first", "next"
Place = str | int
"""Where to begin: `first`, `next`, or an offset."""


class Message(NamedTuple):
    topic: str
    partition: int
    offset: int
    time: int
    """Microseconds since 1970."""
    key: bytes | None
    value: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        return msgspec.json.decode(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """A batch of one partition. `next` is the offset after it; with a filter, some offsets before it may be missing."""

    topic: str
    partition: int
    frame: Frame
    next: int

    def __len__(self) -> int:
        return self.frame.count

    @property
    def values(self) -> list[bytes]:
        found: list[bytes] = self.frame.values.to_pylist()
        return found

    def after(self, count: int) -> Messages:
        """The batch without its first messages."""
        return Messages(self.topic, self.partition, self.frame.slice(count, self.frame.count), self.next)

    def to_arrow(self) -> pa.RecordBatch:
        """Columns offset, time, key, value and headers."""
        return self.frame.to_arrow()

    def __iter__(self) -> Iterator[Message]:
        frame = self.frame
        columns = (frame.offsets.tolist(), frame.times.tolist(), frame.keys.to_pylist(), frame.values.to_pylist(),
                   frame.headers.to_pylist())  # fmt: skip
        for offset, moment, key, value, headers in zip(*columns, strict=True):
            yield Message(self.topic, self.partition, offset, moment, key, value, read_headers(headers))


@dataclass(slots=True, eq=False)
class Cursor:
    """The position in one partition: `offset` is asked for next; `handed` is how far the program has got messages.

    Batches that have arrived and were not handed out whole are `pending`. When there are none, the program has got all
    that was asked for, even if the last of it did not pass a filter.
    """

    topic: str
    partition: int
    offset: int
    handed: int
    committed: int | None = None
    identity: str = ""
    """Of the topic: another one of its name is not read."""
    pending: int = 0

    @property
    def position(self) -> int:
        """The offset that `commit` notes."""
        return self.handed if self.pending else self.offset

    def seek(self, offset: int) -> None:
        self.offset = self.handed = offset
        self.pending = 0

    def pull(self, reading: Reading) -> Pull:
        return Pull(self.topic, self.partition, self.offset, reading.most_bytes, reading.most_messages, reading.wait,
                    reading.durable, reading.output, self.identity)  # fmt: skip

    def take(self, reply: Pulled, bulk: memoryview) -> list[Messages]:
        """The batches of an answer. Their checksums are looked at here."""
        found, at = [], 0
        for size in reply.sizes:
            frame = Frame.parse(bulk[at : at + size])
            at += size
            last = at == len(bulk)
            found.append(Messages(self.topic, self.partition, frame, reply.next if last else frame.next))
        self.offset = reply.next
        self.pending += len(found)
        return found

    def finish(self, batch: Messages) -> None:
        """Note that all of a batch was handed out."""
        self.handed = batch.next
        self.pending -= 1


@dataclass(frozen=True, slots=True)
class Reading:
    """How a consumer reads. With `durable`, it sees no message that could still be lost."""

    most_bytes: int = 1 << 20
    most_messages: int = 0
    wait: float = 5.0
    durable: bool = False
    where: str = ""
    select: Mapping[str, str] | None = None
    schema: str = ""
    retry_for: float = 60.0

    @property
    def output(self) -> Output | None:
        if not self.where and not self.select:
            return None
        return Output(self.where, tuple((self.select or {}).items()), self.schema)


def chosen(
    topic: Topic, partitions: Mapping[str, list[int]] | list[int] | None
) -> list[int]:
    """The partitions of a topic to read: those that were named, or all."""
    wanted = partitions.get(topic.name) if isinstance(partitions, Mapping) else partitions
    found = list(range(topic.partitions)) if wanted is None else wanted
    for number in found:
        if not 0 <= number < topic.partitions:
            raise UnknownTopic(f"topic {topic.name!r} has no partition {number}", None, f"0 to {topic.partitions - 1}")
    return found

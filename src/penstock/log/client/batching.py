"""Collect messages in numbered batches, one queue per partition, in order until they are answered. No sockets."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.log.frame import Frame
from penstock.log.records import ProducerIdentity

OVERHEAD = 16
"""What a message takes in a frame beside its bytes, about."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where messages are stored, and how safe they are: `acknowledged` is memory, written or fsynced.

    A duplicate was stored before, by a request whose answer was lost.
    """

    topic: str
    partition: int
    offset: int
    count: int
    acknowledged: str
    duplicate: bool = False


class Sent:
    """A message, or several, on the way: `result()` waits until the server has it, `await` does so in an event loop."""

    __slots__ = ("_batch", "_count", "_index")

    def __init__(self, batch: Batch, index: int, count: int = 1) -> None:
        self._batch, self._index, self._count = batch, index, count

    def done(self) -> bool:
        return self._batch.future.done()

    def result(self, timeout: float | None = None) -> Placed:
        return self._of(self._batch.future.result(timeout))

    def __await__(self) -> Generator[Any, None, Placed]:
        import asyncio

        future = self._batch.future
        if not future.done():
            loop, thread = asyncio.get_running_loop(), threading.get_ident()
            waiter: asyncio.Future[None] = loop.create_future()

            def wake() -> None:
                if not waiter.done():  # it is, if who waits was cancelled
                    waiter.set_result(None)

            def answered(_: Future[Placed]) -> None:
                # An asynchronous producer answers in this loop, where nobody has to be woken through a socket.
                if threading.get_ident() == thread:
                    wake()
                else:
                    loop.call_soon_threadsafe(wake)

            future.add_done_callback(answered)
            yield from waiter
        return self._of(future.result())

    def _of(self, placed: Placed) -> Placed:
        offset = placed.offset + self._index
        return Placed(placed.topic, placed.partition, offset, self._count, placed.acknowledged, placed.duplicate)


@dataclass(slots=True, eq=False)
class Batch:
    """Messages that become one frame."""

    values: list[Any] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    headers: list[bytes | None] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    size: int = 0
    born: float = field(default_factory=time.monotonic)
    future: Future[Placed] = field(default_factory=Future)
    frame: Frame | None = None
    count: int = 0

    def add(self, value: Any, key: bytes | None, headers: bytes | None, moment: int, size: int) -> int:
        """Add a message; returns its index in the batch."""
        self.values.append(value)
        self.times.append(moment)
        if key is not None:
            self.keys.extend([None] * (self.count - len(self.keys)))
            self.keys.append(key)
        if headers is not None:
            self.headers.extend([None] * (self.count - len(self.headers)))
            self.headers.append(headers)
        self.size += size
        self.count += 1
        return self.count - 1

    def pack(self, identity: ProducerIdentity, sequence: int) -> Frame:
        """The frame, with these numbers."""
        for column in (self.keys, self.headers):
            if column:
                column.extend([None] * (self.count - len(column)))
        whole = self.values[0] if len(self.values) == 1 and isinstance(self.values[0], pa.Array) else self.values
        self.frame = Frame.pack(
            whole, keys=self.keys or None, headers=self.headers or None, times=self.times if self.times else None,
            producer=identity.id, epoch=identity.epoch, sequence=sequence,
        )  # fmt: skip
        return self.frame


@dataclass(slots=True, eq=False)
class Queue:
    """The batches for one partition, in order: those that are `sent` and unanswered, then those that are `ready`."""

    topic: str
    partition: int
    open: Batch | None = None
    ready: deque[Batch] = field(default_factory=deque)
    sent: deque[Batch] = field(default_factory=deque)
    identity: ProducerIdentity | None = None
    sequence: int = 0
    is_renumbering: bool = False
    """A batch failed for good: those behind it get new numbers as soon as all with old ones are answered."""

    def seal(self) -> None:
        """Close the open batch: it gets no more messages."""
        if self.open is not None:
            self.ready.append(self.open)
            self.open = None

    def take(self) -> tuple[Batch, Frame]:
        """The next batch to send. A batch that was sent before keeps its numbers."""
        assert self.identity is not None
        batch = self.ready[0]
        frame = batch.frame
        if frame is None:
            frame = batch.pack(self.identity, self.sequence)
            self.sequence += batch.count
        self.sent.append(self.ready.popleft())
        return batch, frame

    def put_back(self) -> None:
        """Put all unanswered batches back, in order, because the connection is gone and they are sent again."""
        self.ready.extendleft(reversed(self.sent))
        self.sent.clear()

    @property
    def is_answered(self) -> bool:
        """Whether no numbered batch waits for an answer; one sent over a lost connection may be stored as it is."""
        return not self.sent and (not self.ready or self.ready[0].frame is None)

    def renumber(self, identity: ProducerIdentity) -> None:
        assert not self.sent
        self.identity, self.sequence, self.is_renumbering = identity, 0, False
        for batch in self.ready:
            batch.frame = None

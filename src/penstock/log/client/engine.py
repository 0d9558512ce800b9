"""The event loop of a producer: it connects, sends batches, takes answers, and sends again what has no answer.

Batches of a partition carry the numbers of a producer, so a batch that is sent again is stored once. Up to five of them
are on the way at a time, in order; when a connection is lost, all without an answer are sent again in that order.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.log.client.address import Address
from penstock.log.client.aioconnection import AioConnection
from penstock.log.client.batching import OVERHEAD, Batch, Placed, Queue, Sent
from penstock.log.client.catalogue import listed, named
from penstock.log.errors import UnknownTopic
from penstock.log.frame import LARGEST_MESSAGE
from penstock.log.headers import write_headers
from penstock.log.records import ProducerIdentity
from penstock.log.settings import Acknowledge
from penstock.log.topics import partition_of
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import RETRIED, BadRequest, NoServer, Number, WrongToken, error_of

IN_FLIGHT = 5
"""Batches of one partition that are on the way; a server remembers eight of each producer."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_json = msgspec.json.Encoder()


def encoded(value: Any) -> bytes:
    """Bytes as they are, text as UTF-8, anything else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return value.encode() if isinstance(value, str) else _json.encode(value)


@dataclass(frozen=True, slots=True)
class Sending:
    """How a producer sends. `linger` is how long a message waits for others, in seconds."""

    acknowledge: str = "fsynced"
    batch_bytes: int = 256 * 1024
    linger: float = 0.005
    buffer_bytes: int = 64 * 1024 * 1024
    retry_for: float = 60.0
    create: int = 0
    """Partitions of a topic that is not there yet and shall be created; 0: it is an error."""

    def __post_init__(self) -> None:
        Acknowledge.of(self.acknowledge)


class Engine:
    def __init__(self, address: Address, sending: Sending, loop: asyncio.AbstractEventLoop) -> None:
        self.address, self.sending, self.loop = address, sending, loop
        self.lock = threading.Condition()
        self.queues: dict[tuple[str, int], Queue] = {}
        self.partitions: dict[str, int] = {}
        self.buffered = 0
        self.failed: PenstockError | None = None
        self.has_room = asyncio.Event()
        self.connection: AioConnection | None = None
        self.identity: ProducerIdentity | None = None
        self._session = secrets.token_hex(16)
        """Batches may have new numbers after a connection was lost: the old ones are not to be read after them."""
        self._credit = self._on_the_way = 0
        self._sticky: dict[str, int] = {}
        self._topics: dict[str, str] = {}
        """Their identities: what is meant for one is not pushed to another of its name."""
        self._again: dict[tuple[str, int], list[Batch]] = {}
        self._is_woken = self._is_closed = False
        self._thread: int | None = None
        """That of the event loop."""
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # ---- from any thread

    def add(self, topic: str, value: Any, key: bytes | str | None, headers: Mapping[str, str] | None,
            partition: int | None, time_micros: int | None) -> Sent:  # fmt: skip
        raw, packed = encoded(value), write_headers(headers)
        name = key.encode() if isinstance(key, str) else key
        moment = time.time_ns() // 1000 if time_micros is None else time_micros
        size = len(raw) + len(name or b"") + len(packed or b"")
        if self.failed is not None:
            raise self.failed
        if size > LARGEST_MESSAGE:
            raise BadRequest(f"a message of {size:,} bytes", None, f"at most {LARGEST_MESSAGE:,}")
        size += OVERHEAD
        with self.lock:
            queue = self._queue(topic, name, partition)
            is_new = queue.open is None
            if queue.open is None:
                queue.open = Batch()
            batch = queue.open
            index = batch.add(raw, name, packed, moment, size)
            self.buffered += size
            is_full = batch.size >= self.sending.batch_bytes
            if is_full:
                self._seal(queue)
        if is_new or is_full:
            self.wake()
        return Sent(batch, index, 1)

    def add_many(self, topic: str, values: Sequence[Any] | pa.Array, partition: int | None) -> Sent:
        """A batch of its own."""
        array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if not isinstance(array, pa.Array):
            array = pa.array(list(map(encoded, array)), pa.binary())
        if self.failed is not None:
            raise self.failed
        count = len(array)
        batch = Batch([array], size=array.nbytes + OVERHEAD * count, count=count)
        with self.lock:
            queue = self._queue(topic, None, partition)
            queue.seal()
            queue.open = batch
            self.buffered += batch.size
            self._seal(queue)
        self.wake()
        return Sent(batch, 0, count)

    def _seal(self, queue: Queue) -> None:
        """Messages without a key go to another partition from now on."""
        queue.seal()
        self._sticky[queue.topic] = self._sticky.get(queue.topic, 0) + 1

    def _queue(self, topic: str, key: bytes | None, partition: int | None) -> Queue:
        count = self.partitions[topic]
        if partition is None:
            partition = partition_of(key, count) if key is not None else self._sticky.get(topic, 0) % count
        elif not 0 <= partition < count:
            raise UnknownTopic(f"topic {topic!r} has no partition {partition}", None, f"0 to {count - 1}")
        queue = self.queues.get((topic, partition))
        if queue is None:
            queue = self.queues[topic, partition] = Queue(topic, partition)
        return queue

    def wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            is_here = threading.get_ident() == self._thread
            (self.loop.call_soon if is_here else self.loop.call_soon_threadsafe)(self.pump)

    @property
    def is_full(self) -> bool:
        return self.buffered >= self.sending.buffer_bytes

    def unanswered(self) -> list[Future[Placed]]:
        """Close all open batches, so that they are sent now; returns the futures of all batches without an answer."""
        with self.lock:
            for queue in self.queues.values():
                queue.seal()
            batches = [batch for queue in self.queues.values() for batch in (*queue.sent, *queue.ready)]
            batches += [batch for again in self._again.values() for batch in again]
        self.wake()
        return [batch.future for batch in batches]

    # ---- in the event loop

    async def start(self) -> None:
        """Make the first connection; raises if there is no server."""
        self._thread = threading.get_ident()
        self.has_room.set()
        await self._connect()
        self._running = asyncio.create_task(self._keep_connected())

    async def topic(self, name: str) -> None:
        """Find out how many partitions a topic has; afterwards messages can be added."""
        end = time.monotonic() + self.sending.retry_for
        while True:
            try:
                return await self._find(await self._connected(), name)
            except NoServer:
                if self._is_closed or time.monotonic() > end:
                    raise
                await asyncio.sleep(_FIRST_PAUSE)

    async def _find(self, connection: AioConnection, name: str) -> None:
        reply, _ = await connection.ask(requests.Topics(name))
        if self.sending.create and name not in {topic.name for topic in listed(reply)}:
            await connection.ask(requests.Create(name, self.sending.create))
            reply, _ = await connection.ask(requests.Topics(name))
        topic = named(reply, name)
        self.partitions[name], self._topics[name] = topic.partitions, topic.identity

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, *self._tasks, return_exceptions=True)
        if self.connection is not None:
            await self.connection.end()
        closed = NoServer("the producer was closed", None, "flush before closing")
        self._fail_all(closed)
        self.failed = closed

    async def _connect(self) -> None:
        connection = await AioConnection.open(self.address, session=self._session)
        if self.identity is None:
            self.identity = await _identity(connection)
        self._credit, self._on_the_way = connection.welcome.credit, 0
        self.connection = connection

    async def _connected(self) -> AioConnection:
        end = time.monotonic() + self.sending.retry_for
        while self.connection is None or not self.connection.is_open:
            if self.failed is not None:
                raise self.failed
            if time.monotonic() > end:
                raise NoServer(f"no log server answers at {self.address}", None, "is it still running?")
            await asyncio.sleep(_FIRST_PAUSE)
        return self.connection

    async def _keep_connected(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            if self.connection is not None:
                self.pump()
                await self.connection.closed.wait()
                self._put_back()
            try:
                await self._connect()
                pause = _FIRST_PAUSE
            except (WrongToken, BadRequest) as error:
                self.failed = error
                self._fail_all(error)
                return
            except PenstockError as error:
                self._expire(error)
                await asyncio.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, _LONGEST_PAUSE)

    def pump(self) -> None:
        """Send what is ready, and come back when the next batch has waited long enough."""
        self._is_woken = False
        if self._is_closed:
            return
        now, next_time = time.monotonic(), float("inf")
        for queue in list(self.queues.values()):
            if queue.open is not None:
                with self.lock:
                    due = queue.open.born + self.sending.linger if queue.open is not None else next_time
                    if due <= now:
                        self._seal(queue)
                    else:
                        next_time = min(next_time, due)
            if queue.ready:
                self._transmit(queue)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if next_time < float("inf"):
            self._timer = self.loop.call_later(max(next_time - now, 0.0005), self.pump)

    def _transmit(self, queue: Queue) -> None:
        connection = self.connection
        if connection is None or not connection.is_open:
            return
        if queue.identity is None:
            queue.identity = self.identity
        while queue.ready and len(queue.sent) < IN_FLIGHT:
            if queue.is_renumbering and queue.ready[0].frame is None:
                return
            if self._on_the_way and queue.ready[0].size > self._credit:
                return
            try:
                batch, frame = queue.take()
            except PenstockError as error:  # these messages make no frame
                self._finish(queue.ready.popleft(), error)
                continue
            if frame.bytes + tcp.LARGEST_HEAD > connection.welcome.largest:
                self._too_large(queue, batch, connection.welcome.largest - tcp.LARGEST_HEAD)
                return
            push = requests.Push(queue.topic, queue.partition, self.sending.acknowledge, self._topics[queue.topic])
            self._credit -= batch.size
            self._on_the_way += 1
            connection.push(push, frame.data, partial(self._answered, queue, batch, connection))

    def _answered(self, queue: Queue, batch: Batch, connection: AioConnection, reply: requests.Reply) -> None:
        if connection is not self.connection:
            return  # `_put_back` has it
        if isinstance(reply, requests.Refused) and reply.number in RETRIED:
            connection.close()
            return
        self._credit += batch.size
        self._on_the_way -= 1
        if batch not in queue.sent:
            return
        queue.sent.remove(batch)
        if isinstance(reply, requests.Pushed):
            self._finish(batch, Placed(queue.topic, queue.partition, reply.first, reply.count, reply.acknowledged,
                                       reply.duplicate))  # fmt: skip
        else:
            assert isinstance(reply, requests.Refused)
            self._refused(queue, batch, reply)
        if queue.is_renumbering and queue.is_answered:
            self._spawn(self._renumber(queue))
        if any(each.ready for each in self.queues.values()):
            self.pump()

    def _too_large(self, queue: Queue, batch: Batch, limit: int) -> None:
        queue.sent.remove(batch)
        what = f"a batch of {batch.size:,} bytes is more than the {limit:,} that the server takes at once"
        self._refused(queue, batch, requests.Refused(Number.TOO_LARGE, what, "send fewer messages at once"))
        if queue.is_answered:
            self._spawn(self._renumber(queue))

    def _refused(self, queue: Queue, batch: Batch, reply: requests.Refused) -> None:
        """Handle a batch that was refused: its numbers are missing now, so the batches behind it get new numbers.

        A server that has lost messages from its memory also refuses the next ones, as out of sequence.
        """
        queue.is_renumbering = True
        if reply.number == Number.OUT_OF_SEQUENCE and time.monotonic() - batch.born < self.sending.retry_for:
            self._again.setdefault((queue.topic, queue.partition), []).append(batch)
        else:
            self._finish(batch, error_of(reply.number, reply.what, reply.fix))

    async def _renumber(self, queue: Queue) -> None:
        connection = self.connection
        if connection is None or not connection.is_open or not (queue.is_renumbering and queue.is_answered):
            return
        try:
            identity = await _identity(connection)
        except PenstockError:
            return  # after the next connection, `_put_back` starts it again
        self._return_refused(queue)
        queue.renumber(identity)
        self.pump()

    def _return_refused(self, queue: Queue) -> None:
        with self.lock:
            queue.ready.extendleft(reversed(self._again.pop((queue.topic, queue.partition), [])))

    def _put_back(self) -> None:
        for queue in self.queues.values():
            with self.lock:
                queue.put_back()
            if queue.is_renumbering:
                # What was on the way has old numbers; whether it was stored is asked with those, before others follow.
                self._return_refused(queue)
                queue.is_renumbering = False

    def _spawn(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _expire(self, error: PenstockError) -> None:
        oldest = time.monotonic() - self.sending.retry_for
        self._fail(lambda batch: batch.born < oldest, error)

    def _fail_all(self, error: PenstockError) -> None:
        for queue in self.queues.values():
            self._return_refused(queue)
        self._fail(lambda batch: True, error)

    def _fail(self, is_meant: Callable[[Batch], bool], error: PenstockError) -> None:
        for queue in self.queues.values():
            with self.lock:
                queue.seal()
                queue.put_back()
                failed = [batch for batch in queue.ready if is_meant(batch)]
                for batch in failed:
                    queue.ready.remove(batch)
            for batch in failed:
                self._finish(batch, error)

    def _finish(self, batch: Batch, outcome: Placed | PenstockError) -> None:
        with self.lock:
            self.buffered -= batch.size
            self.lock.notify_all()
        if not self.is_full:
            self.has_room.set()
        if isinstance(outcome, Placed):
            batch.future.set_result(outcome)
        else:
            batch.future.set_exception(outcome)


async def _identity(connection: AioConnection) -> ProducerIdentity:
    reply, _ = await connection.ask(requests.AskProducer())
    assert isinstance(reply, requests.ProducerIs)
    return ProducerIdentity(reply.producer, reply.epoch)

"""What the servers of one log share: the log, the event loop, threads for what may wait for the disk, counters."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.log.frame import LARGEST_FRAME, Frame
from penstock.log.log import Log
from penstock.log.records import Receipt
from penstock.log.server.listening import Listening
from penstock.log.server.pulls import STOPPING
from penstock.log.server.push import Push
from penstock.log.settings import Acknowledge
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import BadRequest
from penstock.log.wire.requests import Said

if TYPE_CHECKING:
    from penstock.log.server.tcp import Connection

_Result = TypeVar("_Result")
_THREADS = 4


@dataclass(slots=True)
class Counters:
    """Since the server began. UDP's are written by one thread each."""

    requests: int = 0
    refused: int = 0
    malformed: int = 0
    unauthorised: int = 0
    pushed_messages: int = 0
    pushed_bytes: int = 0
    pulled_messages: int = 0
    pulled_bytes: int = 0
    http_requests: int = 0
    udp_packets: int = 0
    udp_calls: int = 0
    udp_messages: int = 0
    udp_malformed: int = 0
    udp_truncated: int = 0
    udp_unauthorised: int = 0
    udp_refused: int = 0
    udp_pulls: int = 0


class Service:
    def __init__(self, log: Log, listening: Listening, loop: asyncio.AbstractEventLoop) -> None:
        self.log, self.listening, self.loop = log, listening, loop
        self.largest = min(tcp.LARGEST, LARGEST_FRAME + tcp.LARGEST_HEAD, listening.credit + tcp.LARGEST_HEAD)
        self.counters = Counters()
        self.began = time.time()
        self.connections: set[Connection] = set()
        self.paused: set[Connection] = set()
        self.in_flight = 0
        self.is_stopping = threading.Event()
        self._threads = ThreadPoolExecutor(_THREADS, "penstock-log-read")
        self._waiting = ThreadPoolExecutor(_THREADS, "penstock-log-push")
        self._done: deque[tuple[Connection, int, int, Future[Receipt]]] = deque()
        self._is_draining = False
        self._watches: dict[tuple[str, int], _Watch] = {}

    def append(self, topic: str, partition: int, frame: Frame, mode: Acknowledge) -> Future[Receipt]:
        """For who may wait."""
        self._count(frame)
        return self.log.append(topic, partition, frame, mode)

    def begin(self, push: Push, at_once: bool) -> Future[Receipt] | None:
        """For the event loop: None if it is not to be done at once, or there is no room, so that it has to `wait`."""
        self._count(push.frame)
        return self.log.try_append(push.topic, push.partition, push.frame, push.mode) if at_once else None

    def wait(self, push: Push) -> asyncio.Future[Future[Receipt]]:
        """What has begun goes on in a thread, also while the server stops."""
        waiting = partial(self.log.append, push.topic, push.partition, push.frame, push.mode)
        return self.loop.run_in_executor(self._waiting, waiting)

    def _count(self, frame: Frame) -> None:
        if self.is_stopping.is_set():
            raise STOPPING
        self.counters.pushed_messages += frame.count
        self.counters.pushed_bytes += frame.bytes

    def in_thread(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        return self.loop.run_in_executor(self._threads, call)

    def close(self) -> None:
        for watch in self._watches.values():
            watch.cancel()
        for threads in (self._threads, self._waiting):
            threads.shutdown(wait=True, cancel_futures=True)

    # ---- pushes that the log has answered: the event loop is woken once for many of them

    def done(self, connection: Connection, number: int, size: int, future: Future[Receipt]) -> None:
        """In whatever thread."""
        self._done.append((connection, number, size, future))
        if not self._is_draining:
            self._is_draining = True
            self.loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._is_draining = False
        while self._done:
            connection, number, size, future = self._done.popleft()
            connection.pushed(number, size, future)
        if self.paused and self.in_flight <= self.listening.most_in_flight:
            for each in list(self.paused):
                each.hold()

    # ---- readers that wait for messages

    def watch(self, topic: str, partition: int, call: Callable[[], None]) -> Callable[[], None]:
        """Call once in the event loop after the next append there; returns what cancels that."""
        key = topic, partition
        if key not in self._watches:
            self._watches[key] = _Watch(self, topic, partition)
        waiting = self._watches[key].waiting
        waiting.add(call)
        return lambda: waiting.discard(call)

    # ---- requests that are neither push nor pull

    def answer(self, request: requests.Request) -> Said:
        log = self.log
        match request:
            case requests.Topics():
                return requests.TopicList({name: topic.partitions for name, topic in log.topics().items()})
            case requests.Create(topic, partitions):
                log.create(topic, partitions)
                return requests.Done()
            case requests.AskEnds(topic, partition):
                ends = log.ends(topic, partition)
                return requests.EndsAre(ends.first, ends.next, ends.durable)
            case requests.AskOffset(topic, partition, moment):
                return requests.OffsetIs(log.offset_at(topic, partition, moment))
            case requests.Commit(group, topic, partition, offset):
                log.commit(group, topic, partition, offset)
                return requests.Done()
            case requests.AskCommitted(group, topic, partition):
                return requests.OffsetIs(log.committed(group, topic, partition))
            case requests.AskProducer(name):
                identity = log.producer(name or None)
                return requests.ProducerIs(identity.id, identity.epoch)
            case requests.AskNumber(topic, partition, producer):
                found = log.numbered(topic, partition, producer)
                return requests.NumberIs(-1) if found is None else requests.NumberIs(*found)
            case requests.AskStatistics():
                return requests.StatisticsAre(self.statistics())
        raise BadRequest(f"{type(request).__name__} is not for a connection that has begun")

    def statistics(self) -> dict[str, Any]:
        server = dataclasses.asdict(self.counters) | {
            "seconds": round(time.time() - self.began, 3),
            "connections": len(self.connections),
            "in_flight_bytes": self.in_flight,
        }
        stored: dict[str, Any] = msgspec.to_builtins(self.log.statistics(), enc_hook=str, str_keys=True)
        return stored | {"server": server}


class _Watch:
    """One partition, watched for as long as the server runs."""

    def __init__(self, service: Service, topic: str, partition: int) -> None:
        self.loop = service.loop
        self.waiting: set[Callable[[], None]] = set()
        self.is_woken = False
        self.cancel = service.log.on_append(topic, partition, self.appended)

    def appended(self) -> None:
        if self.waiting and not self.is_woken:
            self.is_woken = True
            self.loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        self.is_woken = False
        calls = list(self.waiting)
        self.waiting.clear()
        for call in calls:
            call()

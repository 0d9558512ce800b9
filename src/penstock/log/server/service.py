"""What the servers of one log share: the log, the event loop, counters, and threads for calls that may have to wait."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.log.errors import LogError
from penstock.log.frame import LARGEST_FRAME, Frame
from penstock.log.log import Log
from penstock.log.records import Receipt
from penstock.log.server.complaints import Complaints
from penstock.log.server.counters import Counters
from penstock.log.server.listening import Listening
from penstock.log.server.listing import statistics_page, topic_page
from penstock.log.server.pulls import STOPPING
from penstock.log.server.push import Push
from penstock.log.server.room import Room
from penstock.log.server.sessions import Sessions
from penstock.log.server.strangers import Strangers
from penstock.log.settings import Acknowledge
from penstock.log.single import is_single
from penstock.log.wire import requests, tcp
from penstock.log.wire.errors import BadRequest
from penstock.log.wire.requests import Said

if TYPE_CHECKING:
    from penstock.log.server.talking import Talking

_Result = TypeVar("_Result")
_THREADS = 4
_FILTERS = 2


def _kind(push: Push) -> tuple[bool, Acknowledge, str]:
    return is_single(push.frame.header), push.mode, push.identity


class Service:
    def __init__(self, log: Log, listening: Listening, loop: asyncio.AbstractEventLoop) -> None:
        self.log, self.listening, self.loop = log, listening, loop
        self.largest = min(tcp.LARGEST, LARGEST_FRAME + tcp.LARGEST_HEAD, listening.credit + tcp.LARGEST_HEAD)
        self.counters = Counters()
        self.complaints = Complaints()
        self.began = time.time()
        self.connections: set[Talking] = set()
        self.paused: set[Talking] = set()
        self.known = 0
        """Connections that have said hello; the others are strangers."""
        self.sessions = Sessions()
        self.strangers = Strangers(listening.most_strangers, listening.stranger_seconds)
        self.unfinished, self.unsent = Room(listening.most_unfinished), Room(listening.most_unsent)
        self.in_flight = 0
        self.is_stopping = threading.Event()
        self._threads = ThreadPoolExecutor(_THREADS, "penstock-log-read")
        self.filtering = threading.BoundedSemaphore(_FILTERS)
        """Whoever filters, be it in a thread of HTTP, does so with few others."""
        self._filters = ThreadPoolExecutor(_FILTERS, "penstock-log-filter")
        self._waiting = ThreadPoolExecutor(_THREADS, "penstock-log-push")
        self._done: deque[Push] = deque()
        self._is_draining = self._is_appending = False
        self._pushes: dict[tuple[str, int], list[Push]] = {}
        self._unanswered: dict[tuple[str, int], int] = {}
        self.full: set[tuple[str, int]] = set()
        """Partitions where pushes wait for room; those that come behind them stay in `_pushes`."""
        self._watches: dict[tuple[str, int], _Watch] = {}

    def append(self, topic: str, partition: int, frame: Frame, mode: Acknowledge) -> Future[Receipt]:
        """Append a frame, from a thread that may wait for room."""
        if self.is_stopping.is_set():
            raise STOPPING
        self._count(frame)
        return self.log.append(topic, partition, frame, mode)

    def _count(self, *frames: Frame) -> None:
        self.counters.pushed_messages += sum(frame.count for frame in frames)
        self.counters.pushed_bytes += sum(frame.bytes for frame in frames)

    def push(self, push: Push) -> None:
        """Append a push, in the event loop, together with those of other connections that wait for the same write.

        Otherwise the first of them would be written and fsynced alone, and all others wait for that.
        """
        if self.is_stopping.is_set():
            raise STOPPING
        if not self._is_appending:
            self._is_appending = True
            self.loop.call_soon(self._append_pushes)
        self._pushes.setdefault(push.place, []).append(push)

    def _append_pushes(self) -> None:
        self._is_appending = False
        for place in list(self._pushes):
            if place not in self.full and not self._may_wait(place):
                self._append_at(place, self._pushes.pop(place))

    def _may_wait(self, place: tuple[str, int]) -> bool:
        """Whether others of this partition are being written, and nobody asks for an answer before that has ended.

        Kafka has many writes on the way at a time: there is nothing to wait for.
        """
        if not self._unanswered.get(place) or self.log.settings.last is not None:
            return False
        return all(push.mode is not Acknowledge.MEMORY for push in self._pushes[place])

    def _append_at(self, place: tuple[str, int], pushes: list[Push]) -> None:
        self._unanswered[place] = self._unanswered.get(place, 0) + len(pushes)
        self._count(*(push.frame for push in pushes))
        late = self._append_now(place, pushes)
        try:
            self.log.ask(*place)
        except LogError:
            pass  # then nothing was appended
        except Exception as error:
            self.complaints.failed("pushes could not be written", error)
        if late:
            self.full.add(place)
            self._waiting.submit(self._append_late, place, late)

    def _append_now(self, place: tuple[str, int], pushes: list[Push]) -> list[Push]:
        """Append pushes as long as there is room; returns the rest."""
        for (are_single, _, _), group in groupby(pushes, _kind):
            some = list(group)
            if are_single and self._append_singles(place, some):
                continue
            for push in some:
                if not self._append_one(place, push):
                    return pushes[pushes.index(push) :]
        return []

    def _append_singles(self, place: tuple[str, int], pushes: list[Push]) -> bool:
        mode, identity = pushes[0].mode, pushes[0].identity
        try:
            return self.log.append_singles(*place, [push.frame for push in pushes], mode, pushes, identity)
        except Exception as error:
            for push in pushes:
                push.set_exception(error)
            return True

    def _append_one(self, place: tuple[str, int], push: Push) -> bool:
        try:
            future = self.log.try_append(*place, push.frame, push.mode, ask=False, identity=push.identity)
        except Exception as error:
            push.set_exception(error)
            return True
        if future is not None:
            future.add_done_callback(push.set_future)
        return future is not None

    def _append_late(self, place: tuple[str, int], pushes: list[Push]) -> None:
        """Append pushes in a thread that may wait for room; this goes on also while the server stops."""
        for push in pushes:
            try:
                future = self.log.append(*place, push.frame, push.mode, identity=push.identity)
                future.add_done_callback(push.set_future)
            except Exception as error:
                push.set_exception(error)
        self.loop.call_soon_threadsafe(self._has_room, place)

    def _has_room(self, place: tuple[str, int]) -> None:
        self.full.discard(place)
        self._append_pushes()

    def in_thread(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        return self.loop.run_in_executor(self._threads, call)

    def in_filter(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """Run a filter in a thread for filters: it may take long, and must not keep others from the log."""
        return self.loop.run_in_executor(self._filters, call)

    def close(self) -> None:
        for watch in self._watches.values():
            watch.cancel()
        for threads in (self._threads, self._filters, self._waiting):
            threads.shutdown(wait=True, cancel_futures=True)

    # ---- pushes that the log has answered: the event loop is woken once for many of them

    def done(self, push: Push) -> None:
        """Note that the log has answered a push, from any thread."""
        self._done.append(push)
        if not self._is_draining:
            self._is_draining = True
            self.wake(self._drain)

    def wake(self, call: Callable[[], None]) -> None:
        """Call something in the event loop, from any thread; a server that has stopped calls nothing."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(call)

    def _drain(self) -> None:
        self._is_draining = False
        answered: list[Push] = []
        while self._done:
            push = self._done.popleft()
            left = self._unanswered.pop(push.place) - 1
            if left:
                self._unanswered[push.place] = left
            answered.append(push)
        if self._pushes:
            self._append_pushes()
        for push in answered:
            try:
                push.connection.pushed(push)
            except Exception as error:
                push.connection.fail(error)
        if self.paused and self.in_flight <= self.listening.most_in_flight:
            for each in list(self.paused):
                each.hold()

    def forget(self, connection: Talking, *, was_known: bool) -> None:
        self.known -= was_known
        self.connections.discard(connection)
        self.sessions.end(connection)
        self.paused.discard(connection)
        self.unfinished.free(connection)
        self.unsent.free(connection)

    # ---- readers that wait for messages

    def watch(self, topic: str, partition: int, call: Callable[[], None]) -> Callable[[], None]:
        """Call once in the event loop after the next append there; returns what cancels that."""
        key = topic, partition
        found = self._watches.get(key)
        if found is None or found.is_over():
            found = self._watches[key] = _Watch(self, topic, partition)
        waiting = found.waiting
        waiting.add(call)
        return lambda: waiting.discard(call)

    def unwatch(self, watch: _Watch) -> None:
        if self._watches.get(watch.place) is watch:
            del self._watches[watch.place]

    # ---- requests that are neither push nor pull

    def answer(self, request: requests.Request) -> Said:
        log = self.log
        match request:
            case requests.Topics():
                return topic_page(log.topics(), request)
            case requests.Create(topic, partitions):
                log.create(topic, partitions)
                return requests.Done()
            case requests.Delete(topic, identity):
                log.delete(topic, identity)
                return requests.Done()
            case requests.AskEnds(topic, partition, identity):
                ends = log.ends(topic, partition, identity)
                return requests.EndsAre(ends.first, ends.next, ends.durable)
            case requests.AskOffset(topic, partition, moment):
                return requests.OffsetIs(log.offset_at(topic, partition, moment))
            case requests.Commit(group, topic, partition, offset, identity):
                log.commit(group, topic, partition, offset, identity)
                return requests.Done()
            case requests.AskCommitted(group, topic, partition, identity):
                return requests.OffsetIs(log.committed(group, topic, partition, identity))
            case requests.AskProducer(name):
                producer_identity = log.producer(name or None)
                return requests.ProducerIs(producer_identity.id, producer_identity.epoch)
            case requests.AskNumber(topic, partition, producer):
                found = log.numbered(topic, partition, producer)
                return requests.NumberIs(-1) if found is None else requests.NumberIs(*found)
            case requests.AskStatistics(after, most):
                return requests.StatisticsAre(*self.statistics_page(after, most))
        raise BadRequest(f"{type(request).__name__} is not for a connection that has begun")

    def statistics(self) -> dict[str, Any]:
        """The statistics of all partitions, however many they are."""
        return statistics_page(self.log, None, most_bytes=1 << 62)[0] | {"server": self._numbers()}

    def statistics_page(
        self, after: tuple[str, int] | None, most: int
    ) -> tuple[dict[str, Any], tuple[str, int] | None]:
        values, next = statistics_page(self.log, after, most)
        return values | {"server": self._numbers()}, next

    def _numbers(self) -> dict[str, Any]:
        return dataclasses.asdict(self.counters) | {
            "seconds": round(time.time() - self.began, 3),
            "connections": self.known,
            "unsent_bytes": self.unsent.kept,
            "in_flight_bytes": self.in_flight,
        }


class _Watch:
    """One partition, watched for as long as the server runs and the topic is there."""

    def __init__(self, service: Service, topic: str, partition: int) -> None:
        self.service, self.place = service, (topic, partition)
        self.waiting: set[Callable[[], None]] = set()
        self.is_woken = False
        self.is_over = service.log.is_deleted(topic, partition)
        self.cancel = service.log.on_append(topic, partition, self.appended)

    def appended(self) -> None:
        if not self.is_woken and (self.waiting or self.is_over()):
            self.is_woken = True
            self.service.wake(self.wake)

    def wake(self) -> None:
        self.is_woken = False
        if self.is_over():
            self.service.unwatch(self)
        calls = list(self.waiting)
        self.waiting.clear()
        for call in calls:
            try:
                call()
            except Exception as error:
                self.service.complaints.failed("a reader could not be woken", error)

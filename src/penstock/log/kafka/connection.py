"""The connection of a log to Kafka: its one producer, the thread that hears answers, and a new start after a loss."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from penstock.confluent import CHOOSING, SILENT, KafkaError, KafkaException, OffsetSpec, TopicPartition, said
from penstock.log.errors import LogError
from penstock.log.frame import Frame
from penstock.log.kafka import client
from penstock.log.kafka.readers import Readers
from penstock.log.kafka.records import records_of
from penstock.log.kafka.topic import prepare
from penstock.log.records import Topic
from penstock.log.settings import Kafka
from penstock.log.store.disk import Disk

WATCH_EVERY = 5.0
"""Seconds from one look at what Kafka has to the next."""
STEADY_AFTER = 0.5
"""Seconds in which nothing may arrive in a partition before its end is believed, after a producer was lost."""
_TICK = 0.1
_PAUSE = 0.05
_PASSING = (*CHOOSING, KafkaError.UNKNOWN_TOPIC_OR_PART)


class Served(Protocol):
    """A partition, as the connection sees it."""

    topic: str
    number: int

    @property
    def waits(self) -> bool: ...

    def ask(self) -> None: ...

    def look(self, first: int, next: int) -> None: ...

    def resume(self, next: int) -> None: ...


class Connection:
    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.trouble = SILENT
        self.readers = Readers(kafka)
        self._admin = client.admin(kafka, self._see)
        self._producer: Any = None
        self.sending = threading.Lock()
        """Held while records are handed over, and while producers change."""
        self._lost = threading.Event()
        self._stopping = threading.Event()
        self._stores: list[Served] = []
        self._looked = self._ticked = time.monotonic()
        self._check()
        self._producer = client.producer(kafka, self._see)
        self._thread = threading.Thread(target=self._run, name="penstock-log-kafka", daemon=True)
        self._thread.start()

    def prepare(self, disk: Disk, topic: Topic, directory: Path) -> str:
        return prepare(self._admin, self.kafka, disk, topic, directory)

    def serve(self, store: Served) -> None:
        self._stores.append(store)

    def ends(self, topic: str, partitions: Sequence[int]) -> list[tuple[int, int]]:
        """The first offset that Kafka has, and the one after the last."""
        places = [TopicPartition(topic, partition) for partition in partitions]
        first = self._offsets(places, OffsetSpec.earliest(), f"say how long topic {topic!r} is")
        next = self._offsets(places, OffsetSpec.latest(), f"say how long topic {topic!r} is")
        return list(zip(first, next, strict=True))

    def steady_ends(self, topic: str, partitions: Sequence[int]) -> list[tuple[int, int]]:
        """The ends when they have stopped growing, so that nothing of a lost producer is still on its way."""
        ends = self.ends(topic, partitions)
        while True:
            time.sleep(STEADY_AFTER)
            again = self.ends(topic, partitions)
            if [next for _, next in again] == [next for _, next in ends]:
                return again
            ends = again

    def offset_at(self, topic: str, partition: int, milliseconds: int) -> int | None:
        which = OffsetSpec.for_timestamp(max(milliseconds, 0))
        found = self._offsets([TopicPartition(topic, partition)], which, "find a time")[0]
        return found if found >= 0 else None

    def send(self, topic: str, partition: int, frame: Frame, start: int, delivered: Any) -> int:
        """Hand the messages of a frame to the producer, from the place `start` on; returns how many it took.

        `delivered` is called for the last of them. The caller holds `sending`.
        """
        if self._lost.is_set():
            return 0
        last, produce = frame.count - 1, self._producer.produce
        place = start
        try:
            for record in records_of(frame, start):
                produce(topic, record.value, record.key, partition, delivered if place == last else None, None,
                        record.timestamp, record.headers)  # fmt: skip
                place += 1
        except BufferError:
            pass
        except KafkaException as error:
            self.lose(said(error))
        return place - start

    def lose(self, why: str) -> None:
        """Give the producer up; a new one begins when it is known which messages Kafka has."""
        if not self._lost.is_set():
            self.trouble = why
            self._lost.set()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.purge()
        self._hear(0)
        self.readers.close()

    def _check(self) -> None:
        try:
            self._admin.list_topics(timeout=self.kafka.timeout)
        except KafkaException as error:
            self._admin.poll(0.2)  # what is wrong is told to `_see`
            why = self.trouble if self.trouble != SILENT else said(error)
            raise client.unavailable(self.kafka, f"answer within {self.kafka.timeout:g} s", why) from None

    def _offsets(self, places: Sequence[Any], which: Any, doing: str) -> list[int]:
        deadline = time.monotonic() + self.kafka.timeout
        while True:
            asked = self._ask_offsets(places, which)
            try:
                return [asked[place].result().offset for place in places]
            except KafkaException as error:
                if error.args[0].code() not in _PASSING or time.monotonic() > deadline:
                    raise client.unavailable(self.kafka, doing, said(error)) from None
            time.sleep(_PAUSE)
            self._ask_leaders()

    def _ask_leaders(self) -> None:
        """Have the client look up leaders again: it may know only those of a deleted topic with the same name."""
        with suppress(KafkaException):  # what is wrong is said by the next question
            self._admin.list_topics(timeout=self.kafka.timeout)

    def _ask_offsets(self, places: Sequence[Any], which: Any) -> dict[Any, Future[Any]]:
        asked: dict[Any, Future[Any]] = self._admin.list_offsets(
            dict.fromkeys(places, which), request_timeout=self.kafka.timeout
        )
        return asked

    # ---- the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._hear(_TICK)
                if self._lost.is_set():
                    self._begin_anew()
                self._tick()
            except Exception as error:  # whatever the client raises: without this thread nobody is ever answered
                self.lose(str(error))
                time.sleep(_TICK)

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._ticked >= _TICK:
            self._ticked = now
            for store in tuple(self._stores):
                if store.waits:
                    store.ask()
        if now - self._looked >= WATCH_EVERY:
            self._looked = now
            self._look()

    def _hear(self, seconds: float) -> None:
        """Take answers of Kafka; callbacks bring them to the stores. A producer that cannot go on is given up."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:
            self.lose(said(error))

    def _look(self) -> None:
        """Ask which offsets Kafka has; another thread gets the answer."""
        places = {TopicPartition(store.topic, store.number): store for store in self._stores}
        if not places:
            return
        first = self._ask_offsets(list(places), OffsetSpec.earliest())
        next = self._ask_offsets(list(places), OffsetSpec.latest())
        for place, store in places.items():
            _when_both(first[place], next[place], store.look)

    def _begin_anew(self) -> None:
        """Begin with a new producer, after Kafka has said what it has; if it does not answer, try at the next tick."""
        with self.sending:  # whoever was handing over has ended, and nobody begins
            self._producer.purge()
        deadline = time.monotonic() + 1.0
        while len(self._producer) and time.monotonic() < deadline:
            self._hear(_TICK)
        try:
            for topic in sorted({store.topic for store in self._stores}):
                stores = [store for store in self._stores if store.topic == topic]
                ends = self.steady_ends(topic, [store.number for store in stores])
                for store, (_, next) in zip(stores, ends, strict=True):
                    store.resume(next)
            producer = client.producer(self.kafka, self._see)
        except (LogError, KafkaException) as error:
            self.trouble = error.what if isinstance(error, LogError) else str(error)
            return
        with self.sending:
            self._producer = producer
            self._lost.clear()

    def _see(self, error: Any) -> None:
        summary = error.code() == KafkaError._ALL_BROKERS_DOWN  # says less than what came before it
        if not self._lost.is_set() and not (summary and self.trouble != SILENT):
            self.trouble = error.str()
        if error.fatal() or error.code() == KafkaError._FATAL:
            self.lose(error.str())


def _when_both(first: Future[Any], next: Future[Any], call: Callable[[int, int], None]) -> None:
    """Call with both offsets. To wait for one in the thread that ends the other would be to wait for ever."""

    def heard(future: Future[Any]) -> None:
        if future.exception() is None and first.exception() is None:
            call(first.result().offset, future.result().offset)

    first.add_done_callback(lambda _: next.add_done_callback(heard))

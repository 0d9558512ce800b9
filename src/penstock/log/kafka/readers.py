"""Kafka consumers that stay where they stopped reading, so that the next read from there need not start anew."""

from __future__ import annotations

import threading
import time
from typing import Any

from penstock.confluent import OUT_OF_RANGE, SILENT, TopicPartition
from penstock.log.errors import KafkaUnavailable
from penstock.log.kafka.client import consumer, unavailable
from penstock.log.kafka.records import Found
from penstock.log.settings import Kafka

MOST_READERS = 4
"""How many consumers there are at most, each with a few megabytes that it fetched ahead."""
_AT_ONCE = 500


class OutOfRange(Exception):
    """An offset that Kafka does not have."""


class Reader:
    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._trouble = SILENT
        self._consumer = consumer(kafka, self._see)
        self.place: tuple[str, int, int] | None = None
        """The topic, the partition and the offset that would come next."""
        self._left: list[Any] = []

    def read(self, topic: str, partition: int, offset: int, most_bytes: int, most_messages: int) -> list[Found]:
        if self.place != (topic, partition, offset):
            self._left = []
            self._consumer.assign([TopicPartition(topic, partition, offset)])
        self.place = None
        found: list[Found] = []
        deadline = time.monotonic() + self._kafka.timeout
        while len(found) < most_messages and most_bytes > 0:
            if not self._left:
                self._left = self._fetch(deadline, not found, most_messages - len(found))
                if not self._left:
                    break
            message = self._left.pop()
            one = Found(message.offset(), message.value(), message.key(), message.headers())
            found.append(one)
            most_bytes -= len(one.value or b"") + len(one.key or b"")
            most_bytes -= sum(len(value or b"") for _, value in one.headers or ())
        if found:
            self.place = topic, partition, found[-1].offset + 1
        return found

    def close(self) -> None:
        self._consumer.close()

    def _fetch(self, deadline: float, needed: bool, most: int) -> list[Any]:
        """Fetch records, in reverse order: wait for the first one, and take others if they are there."""
        while True:
            messages = self._consumer.consume(min(most, _AT_ONCE), 0.1 if needed else 0.0)
            for message in messages:
                self._check(message.error())
            if messages or not needed:
                return list(reversed(messages))
            if time.monotonic() > deadline:
                raise unavailable(self._kafka, f"answer a reader within {self._kafka.timeout:g} s", self._trouble)

    def _check(self, error: Any) -> None:
        if error is None:
            return
        if error.code() in OUT_OF_RANGE:
            raise OutOfRange
        raise unavailable(self._kafka, "answer a reader", error.str())

    def _see(self, error: Any) -> None:
        self._trouble = error.str()


class Readers:
    """Any number of threads read; as many as there are readers at a time."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(MOST_READERS)
        self._idle: list[Reader] = []
        self._closed = False

    def read(self, topic: str, partition: int, offset: int, most_bytes: int, most_messages: int) -> list[Found]:
        if not self._turn.acquire(timeout=self._kafka.timeout):
            raise unavailable(self._kafka, "answer other readers", f"{MOST_READERS} wait already")
        try:
            reader = self._taken(topic, partition, offset)
            try:
                found = reader.read(topic, partition, offset, most_bytes, most_messages)
            except BaseException:
                reader.close()
                raise
            self._give_back(reader)
            return found
        finally:
            self._turn.release()

    def close(self) -> None:
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for reader in idle:
            reader.close()

    def _taken(self, topic: str, partition: int, offset: int) -> Reader:
        with self._lock:
            if self._closed:
                raise KafkaUnavailable("the log is closed")
            best = next((one for one in self._idle if one.place == (topic, partition, offset)), None)
            if best is None and len(self._idle) == MOST_READERS:
                best = self._idle[0]
            if best is not None:
                self._idle.remove(best)
                return best
        return Reader(self._kafka)

    def _give_back(self, reader: Reader) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(reader)
                return
        reader.close()

"""Kafka: the broker of `scripts/kafka`, the client confluent-kafka."""

from __future__ import annotations

import asyncio
import importlib.metadata
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.bench import kafka_broker
from penstock.bench.log.peers.base import FSYNCED, MEMORY, WRITTEN, Peer, Publisher, Serving
from penstock.errors import BadMachine

_MODES = {WRITTEN: "acks=all", FSYNCED: "acks=all, flush.messages=1"}
_LACKS = {MEMORY: "Kafka writes to its files before it answers; acks=0 answers nothing"}
_POLL_SECONDS, _QUIET_SECONDS = 0.2, 5.0
_READ = 10_000


@dataclass(frozen=True)
class Served:
    address: str
    mode: str

    async def create(self, topic: str) -> None:
        from penstock.confluent import AdminClient, NewTopic

        settings = {"flush.messages": "1"} if self.mode == FSYNCED else {}
        admin = AdminClient({"bootstrap.servers": self.address})
        for made in admin.create_topics([NewTopic(topic, 1, 1, config=settings)]).values():
            made.result(30)

    async def publisher(self, topic: str, streams: bool = False) -> Publisher:
        return Publishing(self.address, topic, linger=5 if streams else 0)

    async def read(self, topic: str, count: int) -> list[bytes]:
        return await asyncio.to_thread(self._read, topic, count)

    def _read(self, topic: str, count: int) -> list[bytes]:
        from penstock.confluent import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.address, "group.id": topic, "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []
        while len(found) < count:
            messages = consumer.consume(min(_READ, count - len(found)), _QUIET_SECONDS)
            if not messages:
                break
            found.extend(message.value() for message in messages)
        consumer.close()
        return found


class Publishing:
    """Its callbacks run in whoever polls: one thread of its own."""

    def __init__(self, address: str, topic: str, linger: int) -> None:
        from penstock.confluent import Producer

        self._topic, self._loop = topic, asyncio.get_running_loop()
        self._producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": linger})
        self._is_closed = False
        self._polling = threading.Thread(target=self._poll, daemon=True)
        self._polling.start()

    def _poll(self) -> None:
        while not self._is_closed:
            self._producer.poll(_POLL_SECONDS)

    async def publish(self, value: bytes) -> None:
        done = self._loop.create_future()
        self._producer.produce(self._topic, value, partition=0, on_delivery=_Answer(self._loop, done, 1))
        await done

    async def publish_many(self, values: Sequence[bytes]) -> None:
        done = self._loop.create_future()
        answer = _Answer(self._loop, done, len(values))
        messages = [{"value": value} for value in values]
        self._producer.produce_batch(self._topic, messages, partition=0, on_delivery=answer)
        await done

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self._polling.join)
        self._producer.flush(_QUIET_SECONDS)


class _Answer:
    """Ends a future when all messages are delivered."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: asyncio.Future[None], left: int) -> None:
        self._loop, self._done, self._left = loop, done, left

    def __call__(self, error: Any, message: Any) -> None:
        self._left -= 1
        if error is not None:
            self._loop.call_soon_threadsafe(self._fail, str(error))
        elif self._left == 0:
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def _fail(self, error: str) -> None:
        if not self._done.done():
            self._done.set_exception(BadMachine(f"Kafka did not take a message: {error}", None, "see its output"))


def _missing() -> str | None:
    if find_spec("confluent_kafka") is None:
        return 'Kafka has no client here: pip install "penstock[kafka]"'
    return kafka_broker.missing()


def _version() -> str:
    jars = kafka_broker.fetch()
    found = re.search(r"kafka-server-common-([\d.]+)\.jar", " ".join(path.name for path in jars.glob("*.jar")))
    client = importlib.metadata.version("confluent-kafka")
    return f"kafka {found[1] if found else 'unknown'}, confluent-kafka {client}"


@contextmanager
def _serve(directory: Path, mode: str) -> Iterator[Serving]:
    try:
        yield Served(kafka_broker.start(directory, 0), mode)
    finally:
        kafka_broker.stop(directory)


PEER = Peer("kafka", "Kafka", _MODES, _missing, _version, _serve, _LACKS)

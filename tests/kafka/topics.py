"""What the tests of this directory do with topics: make, fill and read them with a plain client."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def new_topic(address: str, partitions: int = 1) -> str:
    name = f"test-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": address})  # which has to live until it is answered
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    return name


def fill(address: str, topic: str, bodies: Sequence[bytes], partition: int = 0, **other: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    for body in bodies:
        while True:
            try:
                producer.produce(topic, body, partition=partition, **other)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(20) == 0


def messages(address: str, topic: str, isolation: str = "read_committed") -> list[list[Any]]:
    """All messages of all partitions, as any other consumer sees them."""
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": address, "group.id": uuid.uuid4().hex, "isolation.level": isolation,
        "enable.partition.eof": True, "auto.offset.reset": "earliest",
    })  # fmt: skip
    count = len(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(count)])
    found: list[list[Any]] = [[] for _ in range(count)]
    ended: set[int] = set()
    deadline = time.monotonic() + 20
    while len(ended) < count and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                found[message.partition()].append(message)
            else:
                ended.add(message.partition())
    consumer.close()
    assert len(ended) == count
    return found


def bodies(address: str, topic: str, isolation: str = "read_committed") -> list[list[bytes]]:
    return [[message.value() for message in part] for part in messages(address, topic, isolation)]

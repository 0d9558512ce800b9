"""The Kafka clients of the message log: what they need of the client, and their errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.confluent import Heard, Server
from penstock.log.errors import BadSettings, KafkaUnavailable
from penstock.log.header import LARGEST_MESSAGE
from penstock.log.settings import Kafka

LARGEST_RECORD = 3 * LARGEST_MESSAGE + (64 << 10)
"""Value, key and headers may each be as large as a message may be."""
FETCH = 1 << 20


@dataclass(frozen=True)
class LastLevel(Server):
    name: ClassVar[str] = "penstock-log"

    servers: str
    options: tuple[tuple[str, str], ...] = field(repr=False)

    def refused(self, why: str) -> BadSettings:
        fix = "see Kafka(servers, compression, options)"
        return BadSettings(f"the Kafka client refuses its settings: {why}", None, fix)


def producer(kafka: Kafka, heard: Heard) -> Any:
    """A producer that never gives up: it sends every message again until Kafka has it, once and in order."""
    needed = {
        "enable.idempotence": True,
        "enable.gapless.guarantee": True,
        "acks": "all",
        "message.timeout.ms": 0,
        "linger.ms": 1,
        "message.max.bytes": LARGEST_RECORD,
        "queue.buffering.max.kbytes": max(kafka.buffer, LARGEST_RECORD) >> 10,
        "queue.buffering.max.messages": 0,
        "compression.type": kafka.compression,
    }
    return _server(kafka).producer(heard, {}, needed)


def consumer(kafka: Kafka, heard: Heard) -> Any:
    needed = {
        "group.id": "penstock-log",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "fetch.message.max.bytes": FETCH,
        "queued.max.messages.kbytes": 4 * FETCH >> 10,
        "receive.message.max.bytes": LARGEST_RECORD + 4 * FETCH,
        "fetch.max.bytes": LARGEST_RECORD,
    }
    return _server(kafka).consumer(heard, {"allow.auto.create.topics": False}, needed)


def admin(kafka: Kafka, heard: Heard) -> Any:
    return _server(kafka).admin(heard)


def unavailable(kafka: Kafka, doing: str, why: object) -> KafkaUnavailable:
    fix = "see whether it runs and whether that is its address; what the levels hold can be read"
    return KafkaUnavailable(_server(kafka).does_not(doing, why), None, fix)


def _server(kafka: Kafka) -> LastLevel:
    return LastLevel(kafka.servers, kafka.options)

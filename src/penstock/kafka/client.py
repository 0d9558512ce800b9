"""The Kafka clients of routes: their settings and their errors."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.confluent import SILENT, KafkaException, Server
from penstock.endpoints.kafka import KafkaTopic
from penstock.errors import BadEndpoint

ANSWER_SECONDS = 15.0
"""How long an answer of Kafka is waited for."""
SEND_SECONDS = 30.0
"""How long messages may be on their way to Kafka."""


@dataclass(frozen=True)
class Place(Server):
    """Where a topic is, with the values of variables: made in the driver and pickled to the tasks."""

    name: ClassVar[str] = "penstock"

    topic: str
    servers: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, end: KafkaTopic) -> Place:
        return cls(end.topic, end.servers, end.full_options())

    def failed(self, doing: str, why: object) -> BadEndpoint:
        fix = "see whether it runs, whether that is its address, and what it wants in options="
        return BadEndpoint(self.does_not(doing, why), fix=fix)

    def refused(self, why: str) -> BadEndpoint:
        return BadEndpoint(f"the Kafka client refuses the settings of topic {self.topic!r}: {why}", fix="see options=")


class Trouble:
    """What the client says between calls; it is why a call got no answer."""

    def __init__(self) -> None:
        self._said = SILENT
        self.client: Any = None

    def __call__(self, error: Any) -> None:
        self._said = error.str()

    @property
    def last(self) -> str:
        with suppress(KafkaException, RuntimeError):
            self.client.poll(0)  # what it has to say, it says when it is asked
        return self._said


def consumer(place: Place, trouble: Trouble, group: str = "penstock-routes") -> Any:
    """It reads what is committed, and belongs to no group of consumers: the name is for Kafka's lists of rights."""
    wanted = {
        "group.id": group,
        "enable.partition.eof": True,
        "queued.max.messages.kbytes": 16 << 10,
        "isolation.level": "read_committed",
    }
    trouble.client = place.consumer(trouble, wanted)
    return trouble.client


def producer(place: Place, trouble: Trouble, transactions: str | None) -> Any:
    """Messages with a key go where the producers of Java would send them."""
    wanted = {
        "linger.ms": 20,
        "message.timeout.ms": int(SEND_SECONDS * 1000),
        "queue.buffering.max.messages": 200_000,
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
    }
    if transactions is not None:
        wanted |= {"transactional.id": transactions, "transaction.timeout.ms": 60_000}
    trouble.client = place.producer(trouble, wanted)
    return trouble.client


def admin(place: Place, trouble: Trouble) -> Any:
    trouble.client = place.admin(trouble)
    return trouble.client

"""The Kafka client of routes: how it is set up, and its errors as ours."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from penstock.endpoints.kafka import KafkaTopic
from penstock.errors import BadEndpoint

try:
    import confluent_kafka
    import confluent_kafka.admin
except ImportError as error:
    raise BadEndpoint(f"Kafka topics need the package confluent-kafka: {error}",
                      fix='pip install "penstock[kafka]", on all machines of a cluster') from None  # fmt: skip

ANSWER_SECONDS = 15.0
"""How long an answer of Kafka is waited for."""
SEND_SECONDS = 30.0
"""How long messages may be on their way to Kafka."""
_LOGGER = logging.getLogger("penstock.kafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False


@dataclass(frozen=True)
class Place:
    """Where a topic is, with the values of variables: made in the driver and pickled to the tasks."""

    topic: str
    servers: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, end: KafkaTopic) -> Place:
        return cls(end.topic, end.servers, end.full_options())

    def failed(self, doing: str, why: object) -> BadEndpoint:
        fix = "see whether it runs, whether that is its address, and what it wants in options="
        return BadEndpoint(f"Kafka at {self.servers} does not {doing}: {said(why)}", fix=fix)


class Trouble:
    """What the client says between calls; it is why a call got no answer."""

    def __init__(self) -> None:
        self._said = "it does not answer"
        self.client: Any = None

    def __call__(self, error: Any) -> None:
        self._said = error.str()

    @property
    def last(self) -> str:
        with suppress(confluent_kafka.KafkaException, RuntimeError):
            self.client.poll(0)  # what it has to say, it says when it is asked
        return self._said


def said(why: object) -> str:
    """An error of the client in one line."""
    if isinstance(why, confluent_kafka.KafkaException):
        why = why.args[0]
    return why.str() if isinstance(why, confluent_kafka.KafkaError) else str(why)


def consumer(place: Place, trouble: Trouble, group: str = "penstock-routes") -> Any:
    """It reads what is committed, and belongs to no group of consumers: the name is for Kafka's lists of rights."""
    own = {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 100,
        "queued.max.messages.kbytes": 16 << 10,
    }
    return _made(confluent_kafka.Consumer, place, trouble, own | {"isolation.level": "read_committed"})


def producer(place: Place, trouble: Trouble, transactions: str | None) -> Any:
    """Messages with a key go where the producers of Java would send them."""
    own = {
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 20,
        "message.timeout.ms": int(SEND_SECONDS * 1000),
        "queue.buffering.max.messages": 200_000,
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
    }
    if transactions is not None:
        own |= {"transactional.id": transactions, "transaction.timeout.ms": 60_000}
    return _made(confluent_kafka.Producer, place, trouble, own)


def admin(place: Place, trouble: Trouble) -> Any:
    return _made(confluent_kafka.admin.AdminClient, place, trouble, {})


def _made(make: Callable[[dict[str, Any]], Any], place: Place, trouble: Trouble, own: dict[str, Any]) -> Any:
    usual = {
        "bootstrap.servers": place.servers,
        "client.id": "penstock",
        "error_cb": trouble,
        "logger": _LOGGER,
        "reconnect.backoff.max.ms": 1000,
    }
    try:
        trouble.client = made = make(usual | own | dict(place.options))
        return made
    except confluent_kafka.KafkaException as error:
        raise BadEndpoint(f"the Kafka client refuses the settings of topic {place.topic!r}: {said(error)}",
                          fix="see options=") from None  # fmt: skip

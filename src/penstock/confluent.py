"""The one way to Kafka: loads its client, confluent-kafka, sets it up for our uses, and puts its errors into words.

Routes and the message log say what they want of a client; what both need is here. Nothing else imports confluent-kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from penstock.errors import BadMachine, PenstockError
from penstock.masking import masked

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
    from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType
except ImportError as error:
    raise BadMachine(f"Kafka needs the package confluent-kafka: {error}", None,
                     'pip install "penstock[kafka]", on all machines of a cluster') from None  # fmt: skip

__all__ = [
    "AdminClient", "ConfigResource", "Consumer", "KafkaError", "KafkaException", "NewTopic", "OffsetSpec", "Producer",
    "ResourceType", "TopicCollection", "TopicPartition",
]  # fmt: skip

SILENT = "it does not answer"
"""What is known of a Kafka that has not said anything yet."""
GONE = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)
CHOOSING = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
"""What a Kafka says that is choosing a leader, or whose leader has not heard of it: soon it says something else."""
OUT_OF_RANGE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)

Heard = Callable[[Any], None]
"""Is called with an error of a client that belongs to no message."""
Own = Mapping[str, Any]
"""Settings of librdkafka."""

_LOGGER = logging.getLogger("penstock.kafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False


class Server:
    """A Kafka, and how one of its users wants to hear of its failures.

    `options` are what people set for all clients: they replace what we want, and not what we need.
    """

    name: ClassVar[str]
    """What the clients are called in Kafka's own lists."""
    servers: str
    options: tuple[tuple[str, str], ...]

    def refused(self, why: str) -> PenstockError:
        """The error of settings that the client does not take."""
        raise NotImplementedError

    def producer(self, heard: Heard, wanted: Own, needed: Own | None = None) -> Any:
        """It sends every message once and in order, and believes that it is there when all replicas have it."""
        own = {"enable.idempotence": True, "acks": "all"}
        return self._made(Producer, heard, own | dict(wanted), needed)

    def consumer(self, heard: Heard, wanted: Own, needed: Own | None = None) -> Any:
        """It reads where it is told to, and Kafka remembers nothing of that."""
        own = {
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
        }
        return self._made(Consumer, heard, own | dict(wanted), needed)

    def admin(self, heard: Heard) -> Any:
        return self._made(AdminClient, heard, {})

    def does_not(self, doing: str, why: object) -> str:
        return f"Kafka at {masked(self.servers)} does not {doing}: {said(why)}"

    def _made(self, make: Callable[[dict[str, Any]], Any], heard: Heard, wanted: Own, needed: Own | None = None) -> Any:
        usual = {
            "bootstrap.servers": self.servers,
            "client.id": self.name,
            "error_cb": heard,
            "logger": _LOGGER,
            "socket.keepalive.enable": True,
            "reconnect.backoff.max.ms": 1000,
        }
        try:
            return make(usual | dict(wanted) | dict(self.options) | dict(needed or {}))
        except KafkaException as error:
            raise self.refused(said(error)) from None


def said(why: object) -> str:
    """An error of the client in one line."""
    if isinstance(why, KafkaException):
        why = why.args[0]
    return why.str() if isinstance(why, KafkaError) else str(why)

"""The Kafka client: how it is set up, and its errors as ours."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from penstock.errors import masked
from penstock.log.errors import BadSettings, KafkaUnavailable
from penstock.log.header import LARGEST_MESSAGE
from penstock.log.settings import Kafka

try:
    import confluent_kafka
    import confluent_kafka.admin
except ImportError as error:
    raise BadSettings(f"Kafka as last level needs the package confluent-kafka: {error}", None,
                      'pip install "penstock[kafka]"') from None  # fmt: skip

LARGEST_RECORD = 3 * LARGEST_MESSAGE + (64 << 10)
"""Value, key and headers may each be as large as a message may be."""
FETCH = 1 << 20
_LOGGER = logging.getLogger("penstock.log.kafka")
_LOGGER.addHandler(logging.NullHandler())

Trouble = Callable[[Any], None]
"""What is called with an error of the client that belongs to no message."""


def common(kafka: Kafka, trouble: Trouble) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.servers,
        "client.id": "penstock-log",
        "error_cb": trouble,
        "logger": _LOGGER,
        "socket.keepalive.enable": True,
        "reconnect.backoff.max.ms": 1000,
        "allow.auto.create.topics": False,
        **dict(kafka.options),
    }


def producer(kafka: Kafka, trouble: Trouble) -> Any:
    """It never gives up: what it was given is sent again until Kafka has it, once and in order."""
    own = {
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
    settings = common(kafka, trouble) | own
    del settings["allow.auto.create.topics"]
    return _made(confluent_kafka.Producer, settings)


def consumer(kafka: Kafka, trouble: Trouble) -> Any:
    own = {
        "group.id": "penstock-log",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "fetch.message.max.bytes": FETCH,
        "fetch.wait.max.ms": 100,
        "queued.max.messages.kbytes": 4 * FETCH >> 10,
        "receive.message.max.bytes": LARGEST_RECORD + 4 * FETCH,
        "fetch.max.bytes": LARGEST_RECORD,
    }
    return _made(confluent_kafka.Consumer, common(kafka, trouble) | own)


def admin(kafka: Kafka, trouble: Trouble) -> Any:
    settings = common(kafka, trouble)
    del settings["allow.auto.create.topics"]
    return _made(confluent_kafka.admin.AdminClient, settings)


def unavailable(kafka: Kafka, doing: str, why: object) -> KafkaUnavailable:
    fix = "see whether it runs and whether that is its address; what the levels hold can be read"
    return KafkaUnavailable(f"Kafka at {masked(kafka.servers)} does not {doing}: {why}", None, fix)


def _made(make: Callable[[dict[str, Any]], Any], settings: dict[str, Any]) -> Any:
    try:
        return make(settings)
    except confluent_kafka.KafkaException as error:
        raise BadSettings(f"the Kafka client refuses its settings: {error.args[0].str()}", None,
                          "see Kafka(servers, compression, options)") from None  # fmt: skip

"""Make the Kafka topic of a topic, or check that the one that is there has the right settings."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from penstock.confluent import (
    GONE,
    ConfigResource,
    KafkaError,
    KafkaException,
    NewTopic,
    ResourceType,
    TopicCollection,
)
from penstock.log.errors import BadTopic, Damaged, UnknownTopic
from penstock.log.kafka.client import LARGEST_RECORD, unavailable
from penstock.log.records import Topic
from penstock.log.settings import Kafka
from penstock.log.store.disk import Disk
from penstock.log.topics import KAFKA_NOTE

_FOREVER = str((1 << 63) - 1)
_KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}
"""A new topic keeps everything, as files do, until somebody sets it otherwise in Kafka. Kafka itself would remove after
a week, by the times of the messages: at once, when old ones are pushed."""


def prepare(admin: Any, kafka: Kafka, disk: Disk, topic: Topic, directory: Path) -> str:
    """The name of the Kafka topic, which is there when this returns."""
    name, note = kafka.prefix + topic.name, _noted(disk, directory / KAFKA_NOTE)
    described = _describe(admin, kafka, name)
    if described is None:
        if note is not None:
            raise UnknownTopic(f"Kafka at {kafka.servers} has no topic {name!r}, where the messages of this log are",
                               str(directory), "is it another Kafka, or another prefix?")  # fmt: skip
        _create(admin, kafka, name, topic.partitions)
        described = _described(admin, kafka, name)
    if note is not None and note != (name, str(described.topic_id)):
        what = f"the Kafka topic {name!r} is not the one that this log was in, {note[0]!r}, or was made anew"
        raise UnknownTopic(what, str(directory), "is it another Kafka, or another prefix?")
    if len(described.partitions) != topic.partitions:
        raise BadTopic(f"the Kafka topic {name!r} has {len(described.partitions)} partitions, not {topic.partitions}",
                       None, f"make ours with {len(described.partitions)}, or give another prefix")  # fmt: skip
    _check_settings(admin, kafka, name)
    if note is None:
        content = {"format": 1, "topic": name, "id": str(described.topic_id)}
        disk.replace(directory / KAFKA_NOTE, json.dumps(content).encode())
    return name


def wanted(kafka: Kafka) -> dict[str, str]:
    """The settings that our topics have in Kafka. Which messages are removed is not among them."""
    settings = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": _FOREVER,
        "message.timestamp.after.max.ms": _FOREVER,
        "max.message.bytes": str(LARGEST_RECORD),
    }
    return settings | ({"flush.messages": "1"} if kafka.fsync else {})


def _noted(disk: Disk, file: Path) -> tuple[str, str] | None:
    content = disk.read(file)
    if content is None:
        return None
    try:
        found = json.loads(content)
        return str(found["topic"]), str(found["id"])
    except (ValueError, KeyError, TypeError):
        raise Damaged(f"{file.name} cannot be read", str(file), "restore it from a copy") from None


def _describe(admin: Any, kafka: Kafka, name: str) -> Any:
    futures = admin.describe_topics(TopicCollection([name]), request_timeout=kafka.timeout)
    try:
        return futures[name].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise unavailable(kafka, f"say what topic {name!r} is", error) from None


def _described(admin: Any, kafka: Kafka, name: str) -> Any:
    """A topic that was just made is known a little later."""
    deadline = time.monotonic() + kafka.timeout
    while time.monotonic() < deadline:
        described = _describe(admin, kafka, name)
        if described is not None and all(one.leader is not None for one in described.partitions):
            return described
        time.sleep(0.05)
    raise unavailable(kafka, f"show topic {name!r}, which was just made", f"it waited {kafka.timeout:g} s")


def _create(admin: Any, kafka: Kafka, name: str, partitions: int) -> None:
    new = NewTopic(name, partitions, kafka.replicas or -1, config=wanted(kafka) | _KEPT)
    try:
        admin.create_topics([new], request_timeout=kafka.timeout)[name].result()
    except KafkaException as error:
        what = error.args[0]
        if what.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if what.code() in GONE:
            raise unavailable(kafka, f"make topic {name!r}", what.str()) from None
        raise BadTopic(f"Kafka refuses to make topic {name!r}: {what.str()}", None,
                       "give another name or prefix, or other replicas") from None  # fmt: skip


def _check_settings(admin: Any, kafka: Kafka, name: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, name)
    try:
        found = admin.describe_configs([resource], request_timeout=kafka.timeout)[resource].result()
    except KafkaException as error:
        raise unavailable(kafka, f"say how topic {name!r} is set", error) from None
    wrong = {key: value for key, value in wanted(kafka).items() if not _fits(key, found[key].value, value)}
    if wrong:
        pairs = ",".join(f"{key}={value}" for key, value in wrong.items())
        has = ", ".join(f"{key}={found[key].value}" for key in wrong)
        raise BadTopic(f"the Kafka topic {name!r} has {has}", None,
                       f"set {pairs} with Kafka's kafka-configs --alter --topic {name} --add-config")  # fmt: skip


def _fits(key: str, found: str, value: str) -> bool:
    return int(found) >= int(value) if key == "max.message.bytes" else found == value

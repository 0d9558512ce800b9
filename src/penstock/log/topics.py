"""Topics: their names, their partitions, and which partition a key belongs to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import xxhash

from penstock.errors import did_you_mean
from penstock.log.errors import BadTopic, Damaged, UnknownTopic
from penstock.log.records import Topic
from penstock.log.store.disk import Disk

MOST_PARTITIONS = 1024
KAFKA_NOTE = "kafka.json"
"""The file in the directory of a topic that says which Kafka topic has its messages."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def check_name(name: str, what: str = "topic") -> str:
    """The name, if it is one: it also names a directory."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadTopic(f"a {what} named {name!r}", None,
                       "letters, digits, '.', '_' and '-', at most 200, beginning with a letter or digit")  # fmt: skip
    return name


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of all messages with this key. It never changes for a number of partitions."""
    return int(xxhash.xxh3_64_intdigest(key) % partitions)


class Topics:
    """The topics in a directory, one directory each, with the number of partitions in a file."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self.directory = directory
        disk.make_directory(directory)
        self.known = {name: self._read(name) for name in disk.names(directory) if self._is_there(name)}

    def create(self, name: str, partitions: int) -> Topic:
        check_name(name)
        if not 1 <= partitions <= MOST_PARTITIONS:
            raise BadTopic(f"topic {name!r} with {partitions} partitions", None, f"1 to {MOST_PARTITIONS}")
        there = self.known.get(name)
        if there is not None:
            if there.partitions != partitions:
                raise BadTopic(f"topic {name!r} has {there.partitions} partitions, not {partitions}", None,
                               "give another name; partitions cannot change, or keys would change theirs")  # fmt: skip
            return there
        self._disk.make_directory(self.directory / name)
        for number in range(partitions):
            self._disk.make_directory(self.partition(name, number))
        content = json.dumps({"format": 1, "partitions": partitions}).encode()
        self._disk.replace(self.directory / name / "topic.json", content)
        self.known[name] = Topic(name, partitions)
        return self.known[name]

    def find(self, name: str, partition: int) -> Topic:
        topic = self.known.get(name)
        if topic is None:
            raise UnknownTopic(f"no topic {name!r}", None, did_you_mean(str(name), self.known))
        if not 0 <= partition < topic.partitions:
            raise UnknownTopic(f"topic {name!r} has no partition {partition}", None, f"0 to {topic.partitions - 1}")
        return topic

    def partition(self, name: str, number: int) -> Path:
        return self.directory / name / str(number)

    def _is_there(self, name: str) -> bool:
        return bool(_NAME.fullmatch(name)) and self._disk.read(self.directory / name / "topic.json") is not None

    def _read(self, name: str) -> Topic:
        file = self.directory / name / "topic.json"
        try:
            partitions = json.loads(self._disk.read(file) or b"")["partitions"]
            if not 1 <= partitions <= MOST_PARTITIONS:
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise Damaged(f"topic {name!r} cannot be read", str(file),
                          'write {"format": 1, "partitions": how many there are} into it') from None  # fmt: skip
        return Topic(name, int(partitions))


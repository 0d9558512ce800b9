"""Topics: their names, their partitions, and which partition a key belongs to."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import replace
from pathlib import Path

import xxhash

from penstock.errors import did_you_mean
from penstock.log.errors import BadTopic, Damaged, UnknownTopic
from penstock.log.records import Topic
from penstock.log.store.disk import Disk

MOST_PARTITIONS = 1024
KAFKA_NOTE = "kafka.json"
"""The file in the directory of a topic that says which Kafka topic has its messages."""
_DELETED = ".deleted-"
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
        found = {name: self.read(name) for name in disk.names(directory) if _NAME.fullmatch(name)}
        self.known = {name: topic for name, topic in found.items() if topic is not None}

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
        self._disk.make_directories(self.directory / name, map(str, range(partitions)))
        return self._write(Topic(name, partitions, secrets.token_hex(8)))

    def identify(self) -> None:
        """Give topics whose file was mended by hand what tells them from others. Only who has the lock may."""
        for topic in list(self.known.values()):
            if not topic.identity:
                self._write(replace(topic, identity=secrets.token_hex(8)))

    def delete(self, name: str) -> Path:
        """Delete a topic: when this returns it is gone for good, and its files are at the place returned."""
        aside = self.directory / f"{_DELETED}{name}.{secrets.token_hex(8)}"
        try:
            self._disk.rename(self.directory / name, aside)
        except OSError:
            if name in self._disk.names(self.directory):
                raise
            # The next to open the log removes what was renamed, so nothing may be written to it any more.
        del self.known[name]
        return aside

    def finish_deletions(self) -> None:
        """Remove the files of topics whose deletion a kill interrupted. Only who has the lock may."""
        for name in self._disk.names(self.directory):
            if name.startswith(_DELETED):
                self._disk.remove_directory(self.directory / name)

    def _write(self, topic: Topic) -> Topic:
        content = {"format": 1, "partitions": topic.partitions, "identity": topic.identity}
        self._disk.replace(self.directory / topic.name / "topic.json", json.dumps(content).encode())
        self.known[topic.name] = topic
        return topic

    def find(self, name: str, partition: int) -> Topic:
        topic = self.known.get(name)
        if topic is None:
            raise UnknownTopic(f"no topic {name!r}", None, did_you_mean(str(name), self.known))
        if not 0 <= partition < topic.partitions:
            raise UnknownTopic(f"topic {name!r} has no partition {partition}", None, f"0 to {topic.partitions - 1}")
        return topic

    def partition(self, name: str, number: int) -> Path:
        return self.directory / name / str(number)

    def read(self, name: str) -> Topic | None:
        """The topic as its file says, if there is one."""
        return read_topic(self._disk, self.directory, name)


def read_topic(disk: Disk, directory: Path, name: str) -> Topic | None:
    """A topic in the directory of all topics, without a look at the others."""
    file = directory / name / "topic.json"
    content = disk.read(file)
    if content is None:
        return None
    try:
        found = json.loads(content)
        partitions, identity = found["partitions"], found.get("identity", "")
        if not 1 <= partitions <= MOST_PARTITIONS or not isinstance(identity, str):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Damaged(f"topic {name!r} cannot be read", str(file),
                      'write {"format": 1, "partitions": how many there are} into it') from None  # fmt: skip
    return Topic(name, int(partitions), identity)

"""Log: topics of messages, addressed by offset, for a server or for a program in the same process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType

from penstock.log.errors import BadSettings, LogClosed, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.groups import Groups
from penstock.log.identities import Identities
from penstock.log.kafka.connect import connect
from penstock.log.partition import OpenLast, Partition
from penstock.log.records import Ends, ProducerIdentity, Reading, Receipt, Statistics, Topic
from penstock.log.settings import Acknowledge, Settings
from penstock.log.statistics import partition_statistics
from penstock.log.store.commit import Committer
from penstock.log.store.disk import Disk, RealDisk
from penstock.log.store.finding import Finding
from penstock.log.store.retention import retain_every
from penstock.log.topics import KAFKA_NOTE, Topics
from penstock.log.waiting import Answer

MOST_BYTES = 1 << 20


class Log:
    """The log in a directory. Any number of threads may use it, but one process at a time.

    Every error that a caller can cause is a `LogError` and is raised at once, or is the future's exception.
    """

    def __init__(self, directory: Path, settings: Settings | None = None, disk: Disk | None = None) -> None:
        self.directory, self.settings = Path(directory), settings or Settings()
        self._disk = disk or RealDisk()
        self._disk.make_directory(self.directory)
        self._lock = self._disk.lock(self.directory / "lock")
        self._closed = False
        self._opening = threading.Lock()
        self._partitions: dict[tuple[str, int], Partition] = {}
        try:
            self._topics = Topics(self._disk, self.directory / "topics")
            self._groups = Groups(self._disk, self.directory)
            self._identities = Identities(self._disk, self.directory)
            self._kafka = None if self.settings.last is None else connect(self.settings.last)
            self._committer = Committer(self.settings.flush_after, retain_every(self.settings.retention))
        except BaseException:
            self._lock.close()
            raise
        try:
            for topic in self._topics.known.values():
                self._open(topic)
        except BaseException:
            self._committer.stop()
            if self._kafka is not None:
                self._kafka.close()
            self._lock.close()
            raise

    def create(self, topic: str, partitions: int = 1) -> Topic:
        """A topic with this name, made if it is not there."""
        with self._opening:
            self._check_open()
            made = self._topics.create(topic, partitions)
            self._open(made)
            return made

    def topics(self) -> Mapping[str, Topic]:
        return MappingProxyType(dict(self._topics.known))

    def append(
        self, topic: str, partition: int, frame: Frame, acknowledge: Acknowledge = Acknowledge.FSYNCED, *,
        ask: bool = True,
    ) -> Future[Receipt]:
        """Give messages their offsets. The future ends when they are as safe as `acknowledge` says, or cannot be.

        Who appends many at once says so by `ask=False`, and calls `ask` behind the last one.
        """
        return self._partition(topic, partition).append(frame, acknowledge, ask=ask)

    def append_singles(
        self, topic: str, partition: int, frames: Sequence[Frame], acknowledge: Acknowledge, answers: Sequence[Answer]
    ) -> bool:
        """Many frames of one message each at once, which costs less than one after the other; then call `ask`.

        False if nothing was done, because there is no room now or something is wrong: append them one by one.
        """
        return self._partition(topic, partition).append_singles(frames, acknowledge, answers)

    def ask(self, topic: str, partition: int) -> None:
        """Have what was appended without asking written, if somebody waits for that or there is enough of it."""
        self._partition(topic, partition).ask()

    def try_append(
        self, topic: str, partition: int, frame: Frame, acknowledge: Acknowledge = Acknowledge.FSYNCED, *,
        ask: bool = True,
    ) -> Future[Receipt] | None:
        """As `append`, for who must not wait: None if there is no room now."""
        return self._partition(topic, partition).try_append(frame, acknowledge, ask=ask)

    def read(
        self, topic: str, partition: int, offset: int, *, most_bytes: int = MOST_BYTES, most_messages: int | None = None
    ) -> Reading:
        """Messages from `offset` on: at least one if there is one, and not many more than `most_bytes`."""
        return self._partition(topic, partition).read(offset, max(1, most_bytes), most_messages)

    def ends(self, topic: str, partition: int) -> Ends:
        return self._partition(topic, partition).ends()

    def held(self, topic: str, partition: int) -> int:
        """Messages from this offset on are in memory."""
        return self._partition(topic, partition).held()

    def offset_at(self, topic: str, partition: int, time: int) -> int:
        """The first offset whose message is not before `time` (microseconds), or the end."""
        return self._partition(topic, partition).offset_at(time)

    def on_append(self, topic: str, partition: int, call: Callable[[], None]) -> Callable[[], None]:
        """Call, in any thread, whenever there is more to read. What is returned ends that."""
        return self._partition(topic, partition).listen(call)

    def producer(self, name: str | None = None) -> ProducerIdentity:
        """Who numbers its messages, so that pushing them again does no harm. A name ends whoever had it before."""
        self._check_open()
        return self._identities.producer(name)

    def numbered(self, topic: str, partition: int, producer: int) -> tuple[int, int] | None:
        """The epoch of a producer and the number that its next message has, if the partition knows it."""
        return self._partition(topic, partition).numbered(producer)

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Note, durably, that a group goes on with `offset`."""
        ends = self.ends(topic, partition)
        self._groups.commit(group, topic, partition, offset, ends.next)

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        self._partition(topic, partition)
        return self._groups.committed(group, topic, partition)

    def groups(self) -> Mapping[tuple[str, str, int], int]:
        """All committed offsets, by group, topic and partition."""
        return MappingProxyType(self._groups.all())

    def findings(self) -> list[Finding]:
        """What was not as it should be when the log was opened."""
        found = [finding for partition in self._partitions.values() for finding in partition.findings]
        return [*self._groups.findings, *self._identities.findings, *found]

    def statistics(self) -> Statistics:
        partitions = tuple(partition_statistics(partition, self.settings) for partition in self._partitions.values())
        return Statistics(partitions, self._committer.rounds, self._committer.pushes)

    def close(self) -> None:
        """Write and fsync everything, acknowledged or not."""
        with self._opening:
            if self._closed:
                return
            self._closed = True
        errors: list[Exception] = []
        until = time.monotonic() + (self.settings.last.timeout if self.settings.last else 0.0)
        for partition in self._partitions.values():
            try:
                partition.close(until)
            except Exception as error:
                errors.append(error)
        self._committer.stop()
        if self._kafka is not None:
            self._kafka.close()
        self._groups.close()
        self._identities.close()
        self._lock.close()
        if errors:
            raise errors[0]

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *failed: object) -> None:
        self.close()

    def _open(self, topic: Topic) -> None:
        numbers = [number for number in range(topic.partitions) if (topic.name, number) not in self._partitions]
        open_last = self._open_last(topic) if numbers else None
        for number in numbers:
            directory = self._topics.partition(topic.name, number)
            partition = Partition(topic.name, number, directory, self.settings, self._disk, self._committer,
                                  self._identities.epoch, open_last)  # fmt: skip
            self._partitions[topic.name, number] = partition
            self._committer.watched.append(partition)

    def _open_last(self, topic: Topic) -> OpenLast | None:
        """How the partitions of a topic get their last level; None means files."""
        directory = self._topics.directory / topic.name
        if self._kafka is None:
            if self._disk.read(directory / KAFKA_NOTE) is not None:
                raise BadSettings(f"the messages of topic {topic.name!r} are in Kafka", str(directory),
                                  "open the log with Settings(last=Kafka(...))")  # fmt: skip
            return None
        places = [self._topics.partition(topic.name, number) for number in range(topic.partitions)]
        return self._kafka.open(self._disk, topic, directory, places)

    def _partition(self, topic: str, partition: int) -> Partition:
        found = self._partitions.get((topic, partition))
        if found is None or self._closed:
            self._check_open()
            self._topics.find(topic, partition)
            raise UnknownTopic(f"topic {topic!r} is being made", None, "try again")
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed(f"the log of {self.directory} is closed", None, "open it again")

"""Log: topics of messages, addressed by offset, for a server or for a program in the same process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType

from penstock.log.closing import Closing
from penstock.log.errors import BadSettings, LogClosed, NotAcknowledged, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.groups import Groups
from penstock.log.identities import Identities
from penstock.log.kafka.connect import connect
from penstock.log.levels.shared import SharedMemory
from penstock.log.partition import OpenLast, Partition, deleted
from penstock.log.records import Ends, PartitionStatistics, ProducerIdentity, Reading, Receipt, Statistics, Topic
from penstock.log.settings import Acknowledge, Settings
from penstock.log.statistics import partition_statistics
from penstock.log.store.commit import Committer
from penstock.log.store.disk import Disk, RealDisk
from penstock.log.store.finding import Finding
from penstock.log.store.openfiles import most_open
from penstock.log.store.retention import retain_every
from penstock.log.topics import KAFKA_NOTE, Topics
from penstock.log.waiting import Answer

MOST_BYTES = 1 << 20


class Log(Closing):
    """The log in a directory. Any number of threads may use it, but one process at a time.

    Every error that a caller can cause is a `LogError` and is raised at once, or is the future's exception.
    """

    def __init__(self, directory: Path, settings: Settings | None = None, disk: Disk | None = None) -> None:
        self.directory, self.settings = Path(directory), settings or Settings()
        self._disk = disk or RealDisk()
        most_open()  # or it says that too few files are allowed, before anything is written
        try:
            self._disk.make_directory(self.directory)
            self._lock = self._disk.lock(self.directory / "lock")
        except (NotADirectoryError, FileNotFoundError, PermissionError) as error:
            raise BadSettings(f"there can be no log: {error.strerror}", str(self.directory),
                              "name a directory that you may write to; it is made if need be") from None  # fmt: skip
        self._closed = False
        self._opening = threading.Lock()
        self._partitions: dict[tuple[str, int], Partition] = {}
        try:
            self._disk.make_private(self.directory)
            self._shared = SharedMemory(self._disk, self.directory)
            self._topics = Topics(self._disk, self.directory / "topics")
            self._topics.finish_deletions()
            self._topics.identify()
            self._groups = Groups(self._disk, self.directory)
            self._groups.forget_deleted(self._topics.known)
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

    def delete(self, topic: str, identity: str = "") -> None:
        """Remove a topic with all its messages, and how far groups have read it, for good; with its identity, no other.

        Whoever reads or writes it is told `TopicDeleted`. A kill on the way leaves all of it or nothing.
        """
        with self._opening:
            self._partition(topic, 0, identity)
            found = self._topics.find(topic, 0)
            if self._kafka is not None:
                raise BadSettings(f"the messages of topic {topic!r} are in Kafka", str(self.directory),
                                  "delete it there; then remove its directory, while the log is closed")  # fmt: skip
            partitions = [self._partitions[topic, number] for number in range(found.partitions)]
            with ExitStack() as resting:
                for partition in partitions:
                    resting.enter_context(partition.at_rest())
                try:
                    files = self._topics.delete(topic)
                except OSError as error:
                    raise NotAcknowledged(f"topic {topic!r} cannot be deleted: {error}", str(self.directory),
                                          "mend the disk") from None  # fmt: skip
                for partition in partitions:
                    del self._partitions[topic, partition.number]
                    self._committer.watched.remove(partition)
                    partition.delete()
            with suppress(OSError):  # the next to open the log removes what is left
                self._disk.remove_directory(files)
            with suppress(NotAcknowledged):  # and forgets the offsets, which are of no other topic
                self._groups.forget_deleted(self._topics.known)

    def topics(self) -> Mapping[str, Topic]:
        return MappingProxyType(dict(self._topics.known))

    def append(
        self, topic: str, partition: int, frame: Frame, acknowledge: Acknowledge = Acknowledge.FSYNCED, *,
        ask: bool = True, identity: str = "",
    ) -> Future[Receipt]:  # fmt: skip
        """Give messages their offsets. The future ends when they are as safe as `acknowledge` says, or cannot be.

        Who appends many at once says so by `ask=False`, and calls `ask` behind the last one. Who gives the `identity`
        of the topic writes to no other one of its name.
        """
        return self._partition(topic, partition, identity).append(frame, acknowledge, ask=ask)

    def append_singles(
        self, topic: str, partition: int, frames: Sequence[Frame], acknowledge: Acknowledge, answers: Sequence[Answer],
        identity: str = "",
    ) -> bool:  # fmt: skip
        """Many frames of one message each at once, which costs less than one after the other; then call `ask`.

        False if nothing was done, because there is no room now or something is wrong: append them one by one.
        """
        return self._partition(topic, partition, identity).append_singles(frames, acknowledge, answers)

    def ask(self, topic: str, partition: int) -> None:
        """Have what was appended without asking written, if somebody waits for that or there is enough of it."""
        self._partition(topic, partition).ask()

    def try_append(
        self, topic: str, partition: int, frame: Frame, acknowledge: Acknowledge = Acknowledge.FSYNCED, *,
        ask: bool = True, identity: str = "",
    ) -> Future[Receipt] | None:  # fmt: skip
        """As `append`, for who must not wait: None if there is no room now."""
        return self._partition(topic, partition, identity).try_append(frame, acknowledge, ask=ask)

    def read(
        self, topic: str, partition: int, offset: int, *, most_bytes: int = MOST_BYTES,
        most_messages: int | None = None, identity: str = "",
    ) -> Reading:  # fmt: skip
        """Messages from `offset` on: at least one if there is one, and not many more than `most_bytes`."""
        return self._partition(topic, partition, identity).read(offset, max(1, most_bytes), most_messages)

    def ends(self, topic: str, partition: int, identity: str = "") -> Ends:
        return self._partition(topic, partition, identity).ends()

    def held(self, topic: str, partition: int, identity: str = "") -> int:
        """The offset from which on messages are in memory."""
        return self._partition(topic, partition, identity).held()

    def offset_at(self, topic: str, partition: int, time: int) -> int:
        """The first offset whose message is not before `time` (microseconds), or the end."""
        return self._partition(topic, partition).offset_at(time)

    def on_append(self, topic: str, partition: int, call: Callable[[], None]) -> Callable[[], None]:
        """Call, in any thread, whenever there is more to read. What is returned ends that."""
        return self._partition(topic, partition).listen(call)

    def is_deleted(self, topic: str, partition: int) -> Callable[[], bool]:
        """Ask it later whether the topic that has this name now was deleted meanwhile."""
        found = self._partition(topic, partition)
        return lambda: found.is_deleted

    def producer(self, name: str | None = None) -> ProducerIdentity:
        """An id and an epoch for a producer that numbers its messages, so that pushing them again does no harm.

        Whoever had the same name before is refused from now on.
        """
        self._check_open()
        return self._identities.producer(name)

    def numbered(self, topic: str, partition: int, producer: int) -> tuple[int, int] | None:
        """The epoch of a producer and the number that its next message has, if the partition knows it."""
        return self._partition(topic, partition).numbered(producer)

    def commit(self, group: str, topic: str, partition: int, offset: int, identity: str = "") -> None:
        """Note, durably, that a group goes on with `offset`."""
        place = self._partition(topic, partition, identity)
        self._groups.commit(group, self._topic(place), partition, offset, place.ends().next)

    def committed(self, group: str, topic: str, partition: int, identity: str = "") -> int | None:
        return self._groups.committed(group, self._topic(self._partition(topic, partition, identity)), partition)

    def groups(self) -> Mapping[tuple[str, str, int], int]:
        """All committed offsets, by group, topic and partition."""
        return MappingProxyType(self._groups.all())

    def findings(self) -> list[Finding]:
        """The damage that was found when the log was opened."""
        found = [finding for partition in self._partitions.values() for finding in partition.findings]
        return [*self._groups.findings, *self._identities.findings, *found]

    def statistics(self) -> Statistics:
        partitions = tuple(partition_statistics(one) for one in list(self._partitions.values()))
        return Statistics(partitions, *self.rounds)

    def places(self) -> list[tuple[str, int]]:
        """All partitions, in order."""
        return sorted(self._partitions)

    def partition_statistics(self, topic: str, partition: int) -> PartitionStatistics:
        return partition_statistics(self._partition(topic, partition))

    @property
    def rounds(self) -> tuple[int, int]:
        """Rounds of group commit, and the appends that they acknowledged."""
        return self._committer.rounds, self._committer.pushes

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
        self._shared.close()
        self._groups.close()
        self._identities.close()
        self._lock.close()
        if errors:
            raise errors[0]

    def _open(self, topic: Topic) -> None:
        numbers = [number for number in range(topic.partitions) if (topic.name, number) not in self._partitions]
        open_last = self._open_last(topic) if numbers else None
        for number in numbers:
            directory = self._topics.partition(topic.name, number)
            partition = Partition(topic.name, number, directory, self.settings, self._disk, self._committer,
                                  self._identities.epoch, open_last, self._shared, topic.identity)  # fmt: skip
            if partition.store.refused is None:
                self._groups.cut(topic, number, partition.store.end)
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

    def _partition(self, topic: str, partition: int, identity: str = "") -> Partition:
        found = self._partitions.get((topic, partition))
        if found is None or self._closed:
            self._check_open()
            if identity and topic not in self._topics.known:
                raise deleted(topic)
            self._topics.find(topic, partition)
            raise UnknownTopic(f"topic {topic!r} is being made", None, "try again")
        if identity and identity != found.identity:
            raise deleted(topic)
        return found

    def _topic(self, partition: Partition) -> Topic:
        """The topic of a partition, which may have been deleted since that was found."""
        found = self._topics.known.get(partition.topic)
        if found is None or found.identity != partition.identity:
            raise deleted(partition.topic)
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed(f"the log of {self.directory} is closed", None, "open it again")

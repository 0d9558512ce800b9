"""Groups of consumers: up to where each has read, and said so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from penstock.log.errors import OffsetOutOfRange
from penstock.log.records import Topic
from penstock.log.store.disk import Disk
from penstock.log.store.finding import Finding
from penstock.log.store.journal import Journal
from penstock.log.topics import check_name


class Groups:
    """The committed offset of every group and partition; it is the offset to read next."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._journal = Journal(disk, directory / "groups.journal")
        self.findings = self._journal.findings
        self._path = directory / "groups.journal"
        self._found = defaultdict[tuple[str, int], list[str]](list)
        for group, topic, partition in self.all():
            self._found[topic, partition].append(group)

    def settle(self, known: Mapping[str, Topic]) -> None:
        """Forget the offsets of topics that are not there; those that earlier versions noted are of the ones that are.

        A topic is told from another of its name by its identity, so no deletion can leave its offsets to the next.
        """
        for key, value in self._journal.items():
            group, topic, partition, *identity = key.decode().split("\n")
            if topic in known and not identity:
                self._journal.set(_key(group, known[topic], int(partition)), value)
        kept = {(topic.name, topic.identity) for topic in known.values()}
        parts = {key: key.decode().split("\n") for key, _ in self._journal.items()}
        self._journal.remove([key for key, (_, topic, _, *identity) in parts.items()
                              if (topic, "".join(identity)) not in kept])  # fmt: skip

    def commit(self, group: str, topic: Topic, partition: int, offset: int, next: int) -> None:
        """`next` is the end of the partition: nobody has read further."""
        key = _key(group, topic, partition)
        if not 0 <= offset <= next:
            raise OffsetOutOfRange(
                f"group {group!r} commits offset {offset} of topic {topic.name!r} partition {partition}", None,
                f"0 to {next}",
            )  # fmt: skip
        self._journal.set(key, str(offset).encode())

    def cut(self, topic: Topic, partition: int, end: int) -> None:
        """Take back what was committed behind the end of a partition that is being opened.

        Messages that were not safe were read, committed and then lost in a crash. Others will get their offsets.
        """
        for group in self._found.pop((topic.name, partition), ()):
            offset = self.committed(group, topic, partition)
            if offset is not None and offset > end:
                self._journal.set(_key(group, topic, partition), str(end).encode())
                place = f"topic {topic.name!r} partition {partition}"
                what = (f"group {group!r} committed offset {offset} of {place}, whose messages end at {end}:"
                        " the others were not fsynced, and are lost")  # fmt: skip
                self.findings.append(Finding(str(self._path), 0, end, offset, what, f"it goes on with {end}"))

    def committed(self, group: str, topic: Topic, partition: int) -> int | None:
        found = self._journal.get(_key(group, topic, partition))
        return None if found is None else int(found)

    def all(self) -> dict[tuple[str, str, int], int]:
        found = {}
        for key, value in self._journal.items():
            group, topic, partition, *_ = key.decode().split("\n")
            found[group, topic, int(partition)] = int(value)
        return found

    def close(self) -> None:
        self._journal.close()


def _key(group: str, topic: Topic, partition: int) -> bytes:
    return f"{check_name(group, 'group')}\n{topic.name}\n{partition}\n{topic.identity}".encode()

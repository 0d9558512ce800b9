"""Groups of consumers: up to where each has read, and said so."""

from __future__ import annotations

from pathlib import Path

from penstock.log.errors import OffsetOutOfRange
from penstock.log.store.disk import Disk
from penstock.log.store.journal import Journal
from penstock.log.topics import check_name


class Groups:
    """The committed offset of every group and partition; it is the offset to read next."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._journal = Journal(disk, directory / "groups.journal")
        self.findings = self._journal.findings

    def commit(self, group: str, topic: str, partition: int, offset: int, next: int) -> None:
        """`next` is the end of the partition: nobody has read further."""
        key = _key(group, topic, partition)
        if not 0 <= offset <= next:
            raise OffsetOutOfRange(f"group {group!r} commits offset {offset} of topic {topic!r} partition {partition}",
                                   None, f"0 to {next}")  # fmt: skip
        self._journal.set(key, str(offset).encode())

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        found = self._journal.get(_key(group, topic, partition))
        return None if found is None else int(found)

    def all(self) -> dict[tuple[str, str, int], int]:
        found = {}
        for key, value in self._journal.items():
            group, topic, partition = key.decode().split("\n")
            found[group, topic, int(partition)] = int(value)
        return found

    def close(self) -> None:
        self._journal.close()


def _key(group: str, topic: str, partition: int) -> bytes:
    return f"{check_name(group, 'group')}\n{topic}\n{partition}".encode()

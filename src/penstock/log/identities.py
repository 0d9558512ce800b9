"""Ids and epochs of producers: under a name that was used before, a producer gets its id and the next epoch."""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

from penstock.log.records import ProducerIdentity
from penstock.log.store.disk import Disk
from penstock.log.store.journal import Journal
from penstock.log.topics import check_name


class Identities:
    def __init__(self, disk: Disk, directory: Path) -> None:
        self._journal = Journal(disk, directory / "producers.journal")
        self.findings = self._journal.findings
        self._lock = threading.Lock()
        self._epochs: dict[int, int] = {}
        for _, value in self._journal.items():
            identity, epoch = value.split()
            self._epochs[int(identity)] = int(epoch)

    def producer(self, name: str | None) -> ProducerIdentity:
        """A new id, or under a name the id of that name with its next epoch."""
        if name is None:
            return ProducerIdentity(secrets.randbits(62), 0)
        key = check_name(name, "producer").encode()
        with self._lock:
            there = self._journal.get(key)
            number, epoch = (secrets.randbits(62), -1) if there is None else map(int, there.split())
            self._journal.set(key, f"{number} {epoch + 1}".encode())
            self._epochs[number] = epoch + 1
            return ProducerIdentity(number, epoch + 1)

    def epoch(self, producer: int) -> int:
        """The newest epoch that was given to this producer."""
        return self._epochs.get(producer, 0)

    def close(self) -> None:
        self._journal.close()

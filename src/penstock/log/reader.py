"""Reader: ranges of offsets of a topic, from the files of a log or through its server, whole frames at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from penstock.log.client.address import Address
from penstock.log.client.catalogue import named
from penstock.log.client.connection import Connection
from penstock.log.errors import OffsetOutOfRange
from penstock.log.frame import Frame
from penstock.log.partition import deleted
from penstock.log.records import Ends, Topic
from penstock.log.store.disk import RealDisk
from penstock.log.store.reading import Piece, StoredPartition, topic_at
from penstock.log.topics import read_topic
from penstock.log.wire import requests
from penstock.log.wire.errors import NoServer, TooMany

PATIENCE_SECONDS = 10.0
_PULL_BYTES = 4 << 20
_PAUSE = 0.1
_T = TypeVar("_T")


class Reader(Protocol):
    """Reads what is durable."""

    def found(self) -> Topic:
        """The topic as it is there now; raises if there is none."""

    def ends(self, partition: int) -> Ends: ...

    def pieces(self, partition: int, first: int, stop: int, identity: str = "") -> Iterator[Piece]:
        """The messages from offset `first` to before `stop`; of the topic with this identity, and no other."""

    def close(self) -> None: ...


class FileReader:
    """Reads the files of a directory, whether or not somebody writes them."""

    def __init__(self, directory: Path, topic: str) -> None:
        self.directory, self.topic = directory, topic
        self._partitions: dict[int, StoredPartition] = {}

    def found(self) -> Topic:
        return topic_at(self.directory, self.topic)

    def ends(self, partition: int) -> Ends:
        return self._partition(partition).ends()

    def pieces(self, partition: int, first: int, stop: int, identity: str = "") -> Iterator[Piece]:
        self._check(identity)
        yield from self._partition(partition).pieces(first, stop)
        self._check(identity)  # nobody holds it while it is read

    def _check(self, identity: str) -> None:
        if identity:
            found = read_topic(RealDisk(), self.directory / "topics", self.topic)
            if found is None or found.identity != identity:
                raise deleted(self.topic)

    def close(self) -> None:
        self._partitions.clear()

    def _partition(self, number: int) -> StoredPartition:
        if number not in self._partitions:
            self._partitions[number] = StoredPartition.of(self.directory, self.topic, number)
        return self._partitions[number]


class ServerReader:
    """Reads through a server. One that is gone is waited for."""

    def __init__(self, address: Address, topic: str, patience: float = PATIENCE_SECONDS) -> None:
        self.address, self.topic, self.patience = address, topic, patience
        self._connection: Connection | None = None

    def found(self) -> Topic:
        return named(self._patiently(lambda connection: connection.ask(requests.Topics(self.topic))[0]), self.topic)

    def ends(self, partition: int) -> Ends:
        found = self._patiently(lambda connection: connection.ask(requests.AskEnds(self.topic, partition))[0])
        assert isinstance(found, requests.EndsAre)
        return Ends(found.first, found.durable, found.durable)

    def pieces(self, partition: int, first: int, stop: int, identity: str = "") -> Iterator[Piece]:
        while first < stop:
            pull = requests.Pull(self.topic, partition, first, _PULL_BYTES, stop - first, durable=True,
                                 identity=identity)  # fmt: skip
            frames = self._patiently(partial(self._pulled, pull))
            for frame in frames:
                piece = Piece(frame, first - frame.first, min(stop, frame.next) - frame.first)
                yield piece
                first = frame.first + piece.stop

    def _pulled(self, pull: requests.Pull, connection: Connection) -> list[Frame]:
        reply, bulk = connection.ask(pull)
        assert isinstance(reply, requests.Pulled)
        frames, at = [], 0
        for size in reply.sizes:
            frames.append(Frame.parse(bulk[at : at + size]))
            at += size
        if not frames:
            raise OffsetOutOfRange(f"offset {pull.offset} of topic {self.topic!r} is not there yet", str(self.address),
                                   "it was there before: is this the same log?")  # fmt: skip
        return frames

    def _patiently(self, ask: Callable[[Connection], _T]) -> _T:
        """Ask, and ask again over a new connection while the server is gone or has no place, and there is patience."""
        end = time.monotonic() + self.patience
        while True:
            try:
                if self._connection is None:
                    self._connection = Connection(self.address)
                return ask(self._connection)
            except (NoServer, TooMany):
                self.close()
                if time.monotonic() + _PAUSE > end:
                    raise
            time.sleep(_PAUSE)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

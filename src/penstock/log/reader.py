"""Reader: ranges of offsets of a topic, from the files of a log or through its server, whole frames at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from penstock.log.client.address import Address
from penstock.log.client.connection import Connection
from penstock.log.errors import OffsetOutOfRange, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.records import Ends
from penstock.log.store.reading import Piece, StoredPartition, topic_at
from penstock.log.wire import requests
from penstock.log.wire.errors import NoServer

PATIENCE_SECONDS = 10.0
_PULL_BYTES = 4 << 20
_PAUSE = 0.1
_T = TypeVar("_T")


class Reader(Protocol):
    """Reads what is durable."""

    def partitions(self) -> int:
        """How many partitions the topic has; raises if there is no such topic."""

    def ends(self, partition: int) -> Ends: ...

    def pieces(self, partition: int, first: int, stop: int) -> Iterator[Piece]:
        """The messages from offset `first` to before `stop`."""

    def close(self) -> None: ...


class FileReader:
    """Reads the files of a directory, whether or not somebody writes them."""

    def __init__(self, directory: Path, topic: str) -> None:
        self.directory, self.topic = directory, topic
        self._partitions: dict[int, StoredPartition] = {}

    def partitions(self) -> int:
        return topic_at(self.directory, self.topic).partitions

    def ends(self, partition: int) -> Ends:
        return self._partition(partition).ends()

    def pieces(self, partition: int, first: int, stop: int) -> Iterator[Piece]:
        return self._partition(partition).pieces(first, stop)

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

    def partitions(self) -> int:
        found = self._patiently(lambda connection: connection.ask(requests.Topics())[0])
        assert isinstance(found, requests.TopicList)
        if self.topic not in found.topics:
            raise UnknownTopic(f"no topic {self.topic!r}", None, f"known: {', '.join(sorted(found.topics)) or 'none'}")
        return found.topics[self.topic]

    def ends(self, partition: int) -> Ends:
        found = self._patiently(lambda connection: connection.ask(requests.AskEnds(self.topic, partition))[0])
        assert isinstance(found, requests.EndsAre)
        return Ends(found.first, found.durable, found.durable)

    def pieces(self, partition: int, first: int, stop: int) -> Iterator[Piece]:
        while first < stop:
            frames = self._patiently(lambda connection, at=first: self._pulled(connection, partition, at, stop))  # type: ignore[misc]
            for frame in frames:
                piece = Piece(frame, first - frame.first, min(stop, frame.next) - frame.first)
                yield piece
                first = frame.first + piece.stop

    def _pulled(self, connection: Connection, partition: int, first: int, stop: int) -> list[Frame]:
        pull = requests.Pull(self.topic, partition, first, _PULL_BYTES, stop - first, durable=True)
        reply, bulk = connection.ask(pull)
        assert isinstance(reply, requests.Pulled)
        frames, at = [], 0
        for size in reply.sizes:
            frames.append(Frame.parse(bulk[at : at + size]))
            at += size
        if not frames:
            raise OffsetOutOfRange(f"offset {first} of topic {self.topic!r} is not there yet", str(self.address),
                                   "it was there before: is this the same log?")  # fmt: skip
        return frames

    def _patiently(self, ask: Callable[[Connection], _T]) -> _T:
        """Ask, and ask again over a new connection if the server is gone, for as long as there is patience."""
        end = time.monotonic() + self.patience
        while True:
            try:
                if self._connection is None:
                    self._connection = Connection(self.address)
                return ask(self._connection)
            except NoServer:
                self.close()
                if time.monotonic() + _PAUSE > end:
                    raise
            time.sleep(_PAUSE)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

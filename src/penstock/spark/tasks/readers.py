"""How messages enter a pass: from sources, from the waiting room, and as dead letters that are replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.envelope import ENVELOPE, ORDERS, TRIES
from penstock.kernel.block import Arrived, Block, Parts, arrived_of
from penstock.kernel.flow import Ends, Flow
from penstock.kernel.reading import Decoder, Failures
from penstock.kernel.waiting import WaitingRoom, due_between
from penstock.message import Message
from penstock.plan.plan import Entry
from penstock.reference.resume import Entrance
from penstock.spark.read.pieces import Pieces, Sized
from penstock.spark.tasks.parcels import unpacked


@dataclass(frozen=True)
class Entering:
    """Messages that enter at the start of a route, or at the step `title`; `failures` has those that cannot be decoded.

    Messages that come `back` from the waiting room were counted as received in an earlier batch.
    """

    route: str
    block: Block
    failures: Failures
    title: str | None = None
    back: bool = False

    def follow(self, flow: Flow) -> Ends:
        if not len(self.block):
            return Ends()
        if self.title is None:
            return flow.run(self.route, self.block)
        return flow.try_again(self.title, self.block) if self.back else flow.resume(self.title, self.block)


class Reader(Protocol):
    """Reads pieces as messages that enter a pass; pickled to the tasks."""

    def entering(self, piece: Any) -> Iterator[Entering]: ...


class SourceReader:
    """Reads and decodes the pieces of one source."""

    def __init__(self, entry: Entry, number: int, pieces: Pieces[Any]) -> None:
        self.pieces, self.route, self.number, self.decode = pieces, entry.route, number, Decoder(entry)

    def entering(self, piece: Any) -> Iterator[Entering]:
        for arrived in self.pieces.blocks(piece):
            yield Entering(self.route, *self.decode(replace(arrived, source=self.number)))


@dataclass(frozen=True)
class WaitingFile:
    path: str
    size: int


class WaitingReader:
    """Reads files of the waiting room: the messages that became due after `since`, up to `now`."""

    def __init__(self, room: WaitingRoom, since: int, now: int) -> None:
        self.room, self.since, self.now = room, since, now

    def entering(self, piece: WaitingFile) -> Iterator[Entering]:
        with pa.memory_map(piece.path) as file:
            parcels = pa.ipc.open_file(file).read_all().column("body")
            for parcel in parcels:
                rows = unpacked(parcel.as_buffer())
                due = due_between(rows, self.since, self.now)
                if len(due):
                    back = self.room.released(rows.take(pa.array(due)))
                    yield Entering(back.route, back.block, back.failures, back.title, True)


@dataclass(frozen=True)
class Letters:
    """Dead letters that enter at one place and are decoded in the same way, from the bytes in `carriers`.

    `numbers` are their places among all letters, which give letters at a step their order; at the start they have the
    order of their source. Tasks get no source and no sink, with addresses and passwords.
    """

    route: str
    title: str | None
    decode: Decoder
    source: int
    numbers: tuple[int, ...]
    messages: tuple[Message, ...]
    carriers: tuple[bytes, ...]

    @classmethod
    def of(cls, entrances: Sequence[tuple[int, Entrance]], source: int) -> Letters:
        first = entrances[0][1]
        numbers, found = zip(*entrances, strict=True)
        stage, reader = first.stage, first.reader
        route, title = (reader.route, None) if stage is None else (stage.route, stage.title)
        return cls(route, title, Decoder(reader), source, numbers,
                   tuple(one.message for one in found), tuple(one.carrier for one in found))  # fmt: skip

    @property
    def size(self) -> int:
        return sum(map(len, self.carriers))


class LetterReader:
    def entering(self, piece: Letters) -> Iterator[Entering]:
        arrived, every = _arrived(piece), np.arange(len(piece.messages))
        good, failures = piece.decode(replace(arrived, bodies=pa.array(piece.carriers, pa.binary())))
        lineage = [message.lineage for message in piece.messages]
        parts = Parts((), *(np.array([getattr(part, name) if part else -1 for part in lineage])
                            for name in ("index", "count")))  # fmt: skip
        attempt = arrived.attempts(piece.route, every)
        block = Block(arrived, every, good.scope, good.table, every, parts, attempt=attempt)
        yield Entering(piece.route, block.take(good.origin), failures, piece.title)


def _arrived(piece: Letters) -> Arrived:
    messages = piece.messages
    places = [message.position for message in messages]
    paths = [[] if piece.title is None else [number] for number in piece.numbers]
    order = [{"source": piece.source, "topic": place.topic, "partition": place.partition, "offset": place.offset,
              "path": path} for place, path in zip(places, paths, strict=True)]  # fmt: skip
    tried = [{"route": message.journey.tried[0], "count": message.journey.tried[1] + 1} for message in messages]
    parents = [message.lineage.parent if message.lineage else None for message in messages]
    return replace(
        arrived_of(messages, "", piece.source),
        topic=pa.array([place.topic for place in places], pa.string()),
        partition=np.array([place.partition for place in places], np.int64),
        times=pa.array([message.time for message in messages], ENVELOPE.field("time").type),
        order=pa.array(order, ORDERS),
        parents=pa.array(parents, pa.string()),
        tried=pa.array(tried, TRIES),
    )


@dataclass(frozen=True)
class Given:
    """Pieces, and the reader for them."""

    reader: Reader
    pieces: Sequence[Sized]


@dataclass(frozen=True)
class Arrivals:
    """What a pass reads: pieces, and the rows of DataFrames."""

    given: Sequence[Given] = ()
    rows: DataFrame | None = None

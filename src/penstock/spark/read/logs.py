"""Topics of the message log as a Spark source, batch and stream: ranges of offsets become tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from penstock.endpoints.log import KEY_HEADER, Log
from penstock.errors import BadEndpoint, PenstockError
from penstock.kernel.block import Arrived
from penstock.log.client.address import Address
from penstock.log.headers import read_headers
from penstock.log.reader import FileReader, Reader, ServerReader
from penstock.log.records import Ends
from penstock.log.store.reading import Piece
from penstock.plan.plan import Entry
from penstock.spark.read import beginnings
from penstock.spark.read.lines import BLOCK_BYTES
from penstock.spark.read.offsets import TEXTS, TIMES, Offsets, OffsetStream, Range, ranges
from penstock.spark.read.pieces import ROWS_AT_ONCE


@dataclass(frozen=True)
class Place:
    """Where a topic is; made in the driver, which knows paths and variables, and pickled to the tasks."""

    topic: str
    directory: str | None
    address: Address | None

    @classmethod
    def of(cls, end: Log) -> Place:
        if end.is_served:
            return cls(end.topic, None, Address.of(end.at, end.full_token(), end.tls, end.authority))
        return cls(end.topic, os.path.abspath(end.at), None)

    def reader(self) -> Reader:
        if self.directory is not None:
            return FileReader(Path(self.directory), self.topic)
        assert self.address is not None
        return ServerReader(self.address, self.topic)


@cache
def _kept(place: Place) -> Reader:
    """The reader of a process that reads again and again: it knows where things are."""
    return place.reader()


class LogPieces:
    """Ranges of a topic."""

    def __init__(self, end: Log) -> None:
        self.place = Place.of(end)

    def found(self, cores: int) -> list[Range]:
        """All that is durable now."""
        reader = self.place.reader()
        try:
            topic = reader.found()
            ends = {str(number): reader.ends(number) for number in range(topic.partitions)}
        finally:
            reader.close()
        found = ranges({name: one.first for name, one in ends.items()}, {name: one.next for name, one in ends.items()},
                       cores)  # fmt: skip
        return [replace(one, identity=topic.identity) for one in found]

    def blocks(self, chosen: Range) -> Iterator[Arrived]:
        place = self.place
        if place.directory is not None and not os.path.isdir(place.directory):
            raise BadEndpoint(f"a task reads topic {place.topic!r} and does not see {place.directory}",
                              fix="all machines have to share it, or read at='host:port' of its server")  # fmt: skip
        for some in gathered(_kept(place).pieces(*astuple(chosen))):
            values, first = values_of(some), some[0].first
            offsets = np.arange(first, first + len(values))
            yield Arrived(values, place.topic, chosen.partition, offsets, times_of(some), headers_of(some))


def gathered(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Small frames together, so that each step is done for many messages, but not for too many bytes."""
    some: list[Piece] = []
    count = size = 0
    for piece in pieces:
        some.append(piece)
        count += piece.stop - piece.start
        size += piece.frame.bytes
        if count >= ROWS_AT_ONCE or size >= BLOCK_BYTES:
            yield some
            some, count, size = [], 0, 0
    if some:
        yield some


def values_of(pieces: Sequence[Piece]) -> pa.Array:
    """The bodies, where they are: nothing is copied unless several frames are put together."""
    arrays = [piece.frame.values.slice(piece.start, piece.stop - piece.start) for piece in pieces]
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def times_of(pieces: Sequence[Piece]) -> pa.Array:
    times = np.concatenate([piece.frame.times[piece.start : piece.stop] for piece in pieces])
    return pa.array(times).cast(TIMES)


def headers_of(pieces: Sequence[Piece]) -> pa.Array:
    """Headers of messages that have some, with the key among them."""
    if all(piece.frame.key_column is None and piece.frame.header_column is None for piece in pieces):
        return pa.nulls(sum(piece.stop - piece.start for piece in pieces), TEXTS)
    return pa.concat_arrays([_headers(piece) for piece in pieces])


def _headers(piece: Piece) -> pa.Array:
    length = piece.stop - piece.start
    keys = piece.frame.keys.slice(piece.start, length)
    if piece.frame.header_column is None:
        return _only_keys(keys)
    found: list[list[tuple[str, str]] | None] = []
    for raw, key in zip(piece.frame.headers.slice(piece.start, length).to_pylist(), keys.to_pylist(), strict=True):
        headers = read_headers(raw)
        if key is not None:
            headers[KEY_HEADER] = key.decode("utf-8", "replace")
        found.append(list(headers.items()) or None)
    return pa.array(found, TEXTS)


def _only_keys(keys: pa.Array) -> pa.Array:
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([None if key is None else key.decode("utf-8", "replace") for key in keys.to_pylist()])
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(there)]).astype(np.int32)
    starts = pa.array(offsets, mask=np.append(~there, False))
    items = texts.drop_null()
    return pa.MapArray.from_arrays(starts, pa.repeat(pa.scalar(KEY_HEADER), len(items)), items, type=TEXTS)


class LogStream(OffsetStream):
    """The partitions of a topic never change."""

    def __init__(self, entry: Entry, note: str, rows_per_batch: int, parts: int) -> None:
        assert isinstance(entry.source, Log)
        self.place = Place.of(entry.source)
        super().__init__(LogPieces(entry.source), self.place.topic, note, rows_per_batch, parts)

    def ends(self) -> dict[str, Ends]:
        reader = _kept(self.place)
        topic = reader.found()
        self._check_same(topic.identity)
        return {str(number): reader.ends(number) for number in range(topic.partitions)}

    def between(self, start: Offsets, end: Offsets) -> list[Range]:
        if not self.identity:
            self._check_same("")
        return [replace(one, identity=self.identity) for one in super().between(start, end)]

    def _check_same(self, identity: str) -> None:
        """Offsets are those of one topic: another one that has its name now is not read on from there."""
        known = None if self.identity else beginnings.noted(self.note)
        if known is not None:
            self.identity = known.identity
        if not self.identity and identity:
            self.identity = identity
            if known is not None:  # an earlier version noted where it began, and not with which topic
                beginnings.note(self.note, msgspec.structs.replace(known, identity=identity))
        if identity and identity != self.identity:
            raise BadEndpoint(f"the stream has read a topic {self.topic!r} that was deleted; another has its name now",
                              fix="start with a new checkpoint, to read the new one from its beginning")  # fmt: skip


def check(entries: Iterable[Entry]) -> None:
    """What can be wrong with topics that are read, found before Spark starts."""
    for entry in entries:
        if not isinstance(entry.source, Log):
            continue
        place = Place.of(entry.source)
        reader = place.reader() if place.address is None else ServerReader(place.address, place.topic, patience=0)
        try:
            for number in range(reader.found().partitions):
                reader.ends(number)
        except PenstockError as error:
            raise BadEndpoint(f"route {entry.route!r} reads {entry.source}: {error.what}", fix=error.fix) from None
        except OSError as error:
            raise BadEndpoint(f"route {entry.route!r} cannot read {entry.source}: {error}") from None
        finally:
            reader.close()

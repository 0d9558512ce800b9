"""Topics of Kafka as a source, in batch and as a stream: tasks read ranges of offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.endpoints.kafka import EARLIEST, KafkaTopic
from penstock.endpoints.log import KEY_HEADER
from penstock.errors import BadEndpoint, PenstockError
from penstock.kafka.client import Place
from penstock.kafka.reading import Reader, kept, removed
from penstock.kafka.topic import offsets, range_of
from penstock.kernel.block import Arrived
from penstock.log.records import Ends
from penstock.plan.plan import Entry
from penstock.spark.read.offsets import TEXTS, TIMES, Offsets, OffsetStream, Range, ranges
from penstock.spark.read.pieces import ROWS_AT_ONCE

_NO_TIME = 0


class KafkaPieces:
    """A topic in ranges of offsets."""

    def __init__(self, source: KafkaTopic) -> None:
        self.source, self.place = source, Place.of(source)

    def found(self, cores: int) -> list[Range]:
        """The ranges that are there now, or those that the source names."""
        chosen = _range(self.source)
        first, stop = ({str(number): pair[place] for number, pair in chosen.items()} for place in (0, 1))
        return ranges(first, stop, cores)

    def blocks(self, chosen: Range) -> Iterator[Arrived]:
        for messages in kept(self.place).read(chosen.partition, chosen.first, chosen.stop, ROWS_AT_ONCE):
            bodies = pa.array([message.value() or b"" for message in messages], pa.binary())
            offsets = np.fromiter((message.offset() for message in messages), np.int64, len(messages))
            headers = pa.array([_headers(message) for message in messages], TEXTS)
            yield Arrived(bodies, self.place.topic, chosen.partition, offsets, _times(messages), headers)


def _times(messages: list[Any]) -> pa.Array:
    """Kafka counts milliseconds; a message of an old format may have no time."""
    stamps = [message.timestamp() for message in messages]
    return pa.array([1000 * time if kind != _NO_TIME else None for kind, time in stamps], pa.int64()).cast(TIMES)


def _headers(message: Any) -> list[tuple[str, str]] | None:
    """Headers as text, with the key among them; of several with one name the last counts."""
    found = {name: (value or b"").decode("utf-8", "replace") for name, value in message.headers() or ()}
    if message.key() is not None:
        found[KEY_HEADER] = message.key().decode("utf-8", "replace")
    return list(found.items()) or None


class KafkaStream(OffsetStream):
    """A topic as a stream; partitions that it gets later are read from their beginning."""

    def __init__(self, entry: Entry, note: str, rows_per_batch: int, parts: int) -> None:
        assert isinstance(entry.source, KafkaTopic)
        self.begin, self.place = entry.source.start, Place.of(entry.source)
        self.start = str(self.begin)
        super().__init__(KafkaPieces(entry.source), self.place.topic, note, rows_per_batch, parts)

    def ends(self) -> dict[str, Ends]:
        return {str(number): one for number, one in kept(self.place).ends().items()}

    def beginning(self) -> Offsets:
        found = offsets(self.begin, kept(self.place).ends(), EARLIEST, self.place)
        return {str(number): offset for number, offset in found.items()}

    def latestOffset(self, start: Offsets, limit: Any) -> Offsets:
        for number, one in self.ends().items():
            if start.get(number, one.first) < one.first < one.next:
                raise removed(self.place, int(number))
        return super().latestOffset(start, limit)


def _range(source: KafkaTopic) -> dict[int, tuple[int, int]]:
    reader = Reader(Place.of(source))
    try:
        return range_of(source.start, source.end, reader.ends(), reader.place)
    finally:
        reader.close()


def check(entries: Iterable[Entry]) -> None:
    """Raise what is wrong with topics that are read, before Spark starts."""
    for entry in entries:
        if not isinstance(entry.source, KafkaTopic):
            continue
        try:
            _range(entry.source)
        except PenstockError as error:
            raise BadEndpoint(f"route {entry.route!r} reads {entry.source}: {error.what}", fix=error.fix) from None

"""Topics of Kafka as a Spark source, batch and stream: ranges of offsets become tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource

from penstock.endpoints.kafka import EARLIEST, KafkaTopic
from penstock.endpoints.log import KEY_HEADER
from penstock.errors import BadEndpoint, PenstockError
from penstock.kafka.client import Place
from penstock.kafka.reading import Reader, kept, removed
from penstock.kafka.topic import offsets, range_of
from penstock.log.records import Ends
from penstock.plan.plan import Entry
from penstock.spark.frame import HEADERS, TIME
from penstock.spark.read.numbered import numbered_source
from penstock.spark.read.offsets import TEXTS, TIMES, Offsets, OffsetStream, Range, offset_row_type, ranges
from penstock.spark.read.once import read_pieces
from penstock.spark.read.rows import ROWS_AT_ONCE, RowMaker, settle

_NO_TIME = 0


class KafkaReader:
    """Reads ranges of a topic as rows."""

    def __init__(self, entry: Entry, place: Place) -> None:
        self.place, self.rows = place, RowMaker(entry)

    def read_range(self, chosen: Range) -> Iterator[pa.RecordBatch]:
        settle()
        for messages in kept(self.place).read(chosen.partition, chosen.first, chosen.stop, ROWS_AT_ONCE):
            yield self._batch(messages, chosen.partition)

    def _batch(self, messages: list[Any], partition: int) -> pa.RecordBatch:
        bodies = pa.array([message.value() or b"" for message in messages], pa.binary())
        numbers = np.fromiter((message.offset() for message in messages), np.int64, len(messages))
        batch = self.rows.batch(bodies, self.place.topic, partition, numbers)
        given = [_times(messages), pa.array([_headers(message) for message in messages], TEXTS)]
        return pa.RecordBatch.from_arrays([*batch.columns, *given], names=[*batch.schema.names, TIME, HEADERS])


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


class KafkaStream(KafkaReader, OffsetStream):
    """A topic may get more partitions: they are read from their beginning."""

    def __init__(self, entry: Entry, place: Place, rows_per_batch: int, parts: int) -> None:
        assert isinstance(entry.source, KafkaTopic)
        KafkaReader.__init__(self, entry, place)
        OffsetStream.__init__(self, place.topic, rows_per_batch, parts)
        self.begin = entry.source.start

    def ends(self) -> dict[str, Ends]:
        return {str(number): one for number, one in kept(self.place).ends().items()}

    def initialOffset(self) -> Offsets:
        found = offsets(self.begin, kept(self.place).ends(), EARLIEST, self.place)
        return {str(number): offset for number, offset in found.items()}

    def latestOffset(self, start: Offsets, limit: Any) -> Offsets:
        for number, one in self.ends().items():
            if start.get(number, one.first) < one.first < one.next:
                raise removed(self.place, int(number))
        return super().latestOffset(start, limit)


def stream_source(spark: SparkSession, name: str, entry: Entry, rows_per_batch: int) -> type[DataSource]:
    assert isinstance(entry.source, KafkaTopic)
    place, parts = Place.of(entry.source), spark.sparkContext.defaultParallelism
    return numbered_source(
        name, offset_row_type(entry), None, lambda: KafkaStream(entry, place, rows_per_batch, parts)
    )


def read_once(spark: SparkSession, label: str, entry: Entry) -> DataFrame:
    """What is there now, or what the source names, read by a function that the physical plan shows as `label`."""
    assert isinstance(entry.source, KafkaTopic)
    reader = KafkaReader(entry, Place.of(entry.source))
    chosen = _range(entry.source)
    first, stop = ({str(number): pair[place] for number, pair in chosen.items()} for place in (0, 1))
    found = ranges(first, stop, spark.sparkContext.defaultParallelism)
    return read_pieces(spark, label, found, reader.read_range, offset_row_type(entry))


def _range(source: KafkaTopic) -> dict[int, tuple[int, int]]:
    reader = Reader(Place.of(source))
    try:
        return range_of(source.start, source.end, reader.ends(), reader.place)
    finally:
        reader.close()


def check(entries: Iterable[Entry]) -> None:
    """What can be wrong with topics that are read, found before Spark starts."""
    for entry in entries:
        if not isinstance(entry.source, KafkaTopic):
            continue
        try:
            _range(entry.source)
        except PenstockError as error:
            raise BadEndpoint(f"route {entry.route!r} reads {entry.source}: {error.what}", fix=error.fix) from None

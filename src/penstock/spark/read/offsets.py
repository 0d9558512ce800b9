"""Sources whose partitions have offsets: how far a stream has come, and ranges of offsets as tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from penstock.errors import BadEndpoint
from penstock.log.records import Ends
from penstock.plan.plan import Entry
from penstock.spark.frame import HEADERS, TIME
from penstock.spark.read.rows import row_type

ROWS_PER_TASK = 250_000
TEXTS = pa.map_(pa.string(), pa.string())
TIMES = pa.timestamp("us", "UTC")
Offsets = dict[str, int]


@dataclass(frozen=True)
class Range:
    """The messages of one task."""

    partition: int
    first: int
    stop: int


class OffsetStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is how far every partition was read."""

    def __init__(self, topic: str, rows_per_batch: int, parts: int) -> None:
        self.topic, self.rows_per_batch, self.parts = topic, rows_per_batch, parts
        self.target: Offsets | None = None

    def ends(self) -> dict[str, Ends]:
        """What every partition has now, by its number."""
        raise NotImplementedError

    def read_range(self, chosen: Range) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def initialOffset(self) -> Offsets:
        return {number: one.first for number, one in self.ends().items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = {number: one.next for number, one in self.ends().items()}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        ends = self.target if self.target is not None else self._ends(start)
        start = dict.fromkeys(ends, 0) | start
        ends = {number: max(ends.get(number, 0), offset) for number, offset in start.items()}
        if isinstance(limit, ReadAllAvailable):
            return ends
        return limited(start, ends, getattr(limit, "max_rows", self.rows_per_batch))

    def _ends(self, start: Offsets) -> Offsets:
        found = self.ends()
        for number, offset in start.items():
            if number not in found or found[number].next < offset:
                stop = found[number].next if number in found else 0
                raise BadEndpoint(
                    f"the stream has read partition {number} of topic {self.topic!r} up to {offset},"
                    f" and it ends at {stop}",
                    fix="this is another topic than before: restore it, or start with a new checkpoint",
                )
        return {number: one.next for number, one in found.items()}

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        # A partition that is new since then is read from its beginning.
        return [InputPartition(one) for one in ranges(dict.fromkeys(end, 0) | start, end, self.parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_range(partition.value)


def ranges(start: Mapping[str, int], end: Mapping[str, int], parts: int) -> list[Range]:
    """What is between, cut so that there are at least so many tasks; an empty one if there is nothing."""
    total = sum(end[number] - start[number] for number in end)
    size = max(min(-(-total // max(parts, 1)), ROWS_PER_TASK), 1000)
    found = []
    for number in sorted(end, key=int):
        rows = end[number] - start[number]
        pieces = -(-rows // size)
        cuts = [start[number] + rows * cut // pieces for cut in range(pieces)] if pieces else []
        stops = [*cuts[1:], end[number]]
        found += [Range(int(number), first, stop) for first, stop in zip(cuts, stops, strict=False)]
    return found or [Range(0, 0, 0)]


def limited(start: Mapping[str, int], ends: Mapping[str, int], rows: int) -> Offsets:
    """So many rows at most, the same from every partition as long as it has them."""
    found, left = dict(start), rows
    behind = sorted(start, key=lambda number: ends[number] - start[number])
    for place, number in enumerate(behind):
        share = left // (len(behind) - place)
        taken = min(ends[number] - start[number], share)
        found[number] += taken
        left -= taken
    return found


def offset_row_type(entry: Entry) -> spark_types.StructType:
    """Rows with the time and the headers that the source gives."""
    texts = spark_types.MapType(spark_types.StringType(), spark_types.StringType())
    given = [spark_types.StructField(TIME, spark_types.TimestampType()), spark_types.StructField(HEADERS, texts)]
    return spark_types.StructType([*row_type(entry).fields, *given])

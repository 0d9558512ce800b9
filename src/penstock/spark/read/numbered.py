"""Sources whose messages have numbers from 0 on: lists in memory, and messages made at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from penstock.endpoints.simple import Rate
from penstock.plan.plan import Entry
from penstock.spark.read.pieces import Block
from penstock.spark.read.rows import ROWS_AT_ONCE, RowMaker, row_type

ROWS_PER_BATCH = 100_000


class RateReader(DataSourceReader):
    """`count` messages in two ranges, so that both cores of a small machine have work."""

    def __init__(self, entry: Entry) -> None:
        assert isinstance(entry.source, Rate)
        self.source, self.rows = entry.source, RowMaker(entry)

    def partitions(self) -> Sequence[InputPartition]:
        return ranges(0, self.source.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        first, last = partition.value
        for start in range(first, last, ROWS_AT_ONCE):
            numbers = range(start, min(start + ROWS_AT_ONCE, last))
            bodies = pa.array([self.source.message(number) for number in numbers], pa.binary())
            yield from self.rows(Block(bodies, "rate", 0, np.array(numbers)))


def ranges(first: int, last: int, parts: int = 2) -> list[InputPartition]:
    """Equal parts of the numbers; an empty one when there are none, because Spark cannot read no partition."""
    step = max((last - first + parts - 1) // parts, 1)
    starts = range(first, max(last, first + 1), step)
    return [InputPartition((start, min(start + step, last))) for start in starts]


class RateStream(RateReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """As many messages as the seconds since the first start allow; the start is part of the offset."""

    def __init__(self, entry: Entry, rows_per_batch: int) -> None:
        super().__init__(entry)
        self.rows_per_batch = rows_per_batch
        self.target: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {"started": time.time(), "rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.source.count

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        due = int((time.time() - start["started"]) * self.source.per_second)
        rows = due if self.target is None else self.target
        if not isinstance(limit, ReadAllAvailable):
            rows = min(rows, start["rows"] + self.rows_per_batch)
        return {"started": start["started"], "rows": max(rows, start["rows"])}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # type: ignore[override]
        return ranges(start["rows"], end["rows"])


class StoredStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A list of messages that was stored as an Arrow file, some rows at a time; it also carries ids and headers."""

    def __init__(self, path: str, rows_per_batch: int, partitions: int) -> None:
        self.path, self.rows_per_batch, self.parts = path, rows_per_batch, partitions

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """A stored list does not grow."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        with pa.memory_map(self.path) as file:
            total = pa.ipc.open_file(file).schema.metadata[b"rows"]
        return {"rows": min(start["rows"] + self.rows_per_batch, int(total))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return ranges(start["rows"], end["rows"], self.parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        first, last = partition.value
        with pa.memory_map(self.path) as file:
            table = pa.ipc.open_file(file).read_all().slice(first, last - first)
            yield from table.replace_schema_metadata(None).to_batches()


def numbered_source(
    name: str, schema: Any, reader: Callable[[], Any] | None, stream: Callable[[], Any]
) -> type[DataSource]:
    """A data source class around two reader factories."""

    class NumberedSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> Any:
            return schema

        def reader(self, schema: Any) -> DataSourceReader:
            assert reader is not None
            return reader()  # type: ignore[no-any-return]

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return stream()  # type: ignore[no-any-return]

    return NumberedSource


def rate_source(name: str, entry: Entry, rows_per_batch: int = ROWS_PER_BATCH) -> type[DataSource]:
    return numbered_source(name, row_type(entry), lambda: RateReader(entry), lambda: RateStream(entry, rows_per_batch))

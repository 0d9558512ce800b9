"""A streaming source without messages: Spark keeps its position and plans its batches, and our tasks read them."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock.spark.read.handover import Handover

ROWS_PER_BATCH = 100_000
_NOTHING = "nothing"
_ROWS_AT_ONCE = 1_000_000


def stream_source(name: str, schema: Any, stream: Callable[[], Any]) -> type[DataSource]:
    """A data source class around a factory of readers."""

    class StreamSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> Any:
            return schema

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return stream()  # type: ignore[no-any-return]

    return StreamSource


class Unread(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tells Spark how far a stream is, and hands over the offsets of a batch; its empty rows only count messages.

    Of the processes that Spark starts for it only one asks the stream; the others need not import what it consists of.
    """

    def __init__(self, pickled: bytes, handover: Handover | None = None) -> None:
        self.pickled, self.handover = pickled, handover

    @cached_property
    def stream(self) -> Any:
        return pickle.loads(self.pickled)

    def initialOffset(self) -> dict[str, Any]:
        return self.stream.initialOffset()  # type: ignore[no-any-return]

    def getDefaultReadLimit(self) -> ReadLimit:
        return self.stream.getDefaultReadLimit()  # type: ignore[no-any-return]

    def prepareForTriggerAvailableNow(self) -> None:
        self.stream.prepareForTriggerAvailableNow()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self.stream.latestOffset(start, limit)  # type: ignore[no-any-return]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition, because Spark needs one, although there is nothing to read."""
        if self.handover is not None:
            self.handover.plan(start, end)
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        left = self.handover.messages() if self.handover is not None else 0
        while left:
            some = min(left, _ROWS_AT_ONCE)
            yield pa.RecordBatch.from_arrays([pa.nulls(some, pa.int32())], names=[_NOTHING])
            left -= some


def unread(spark: SparkSession, stream: Any, schema: StructType, handover: Handover | None = None) -> DataFrame:
    """A DataFrame of empty rows, with which Spark keeps the position of a stream and counts its messages."""
    name, pickled = f"penstock_{uuid.uuid4().hex}", cloudpickle.dumps(stream)  # type: ignore[no-untyped-call]
    spark.dataSource.register(stream_source(name, f"{_NOTHING} INT", lambda: Unread(pickled, handover)))
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.readStream.format(name).load().select(*columns)

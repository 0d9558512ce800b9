"""A stream of ours as a data source of Spark's, which keeps its position."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

ROWS_PER_BATCH = 100_000


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
    """Says how far a stream is, and reads nothing of it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def initialOffset(self) -> dict[str, Any]:
        return self.stream.initialOffset()  # type: ignore[no-any-return]

    def getDefaultReadLimit(self) -> ReadLimit:
        return self.stream.getDefaultReadLimit()  # type: ignore[no-any-return]

    def prepareForTriggerAvailableNow(self) -> None:
        self.stream.prepareForTriggerAvailableNow()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self.stream.latestOffset(start, limit)  # type: ignore[no-any-return]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One, although there is nothing to read: Spark cannot do without."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return iter(())


def unread(spark: SparkSession, stream: Any, schema: StructType) -> DataFrame:
    """No rows, of this schema, with which Spark keeps the position of a stream."""
    name = f"penstock_{uuid.uuid4().hex}"
    spark.dataSource.register(stream_source(name, "nothing INT", lambda: Unread(stream)))
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.readStream.format(name).load().select(*columns)

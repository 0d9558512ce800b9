"""The log as rows of a DataFrame, for what is written by hand and for comparison with Parquet."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition

from penstock.endpoints.log import Log
from penstock.envelope import BODY, OFFSET, PARTITION, TIME, TOPIC
from penstock.kernel.block import Arrived
from penstock.plan.plan import Entry
from penstock.spark.read.logs import LogPieces, LogStream
from penstock.spark.read.pieces import ROWS_AT_ONCE, Sized, found
from penstock.spark.read.shares import shares
from penstock.spark.read.source import Unread, stream_source

COLUMNS = f"{TOPIC} STRING, {PARTITION} INT, {OFFSET} BIGINT, {BODY} BINARY, {TIME} TIMESTAMP"


def rows_of(pieces: LogPieces, share: Sequence[Sized]) -> Iterator[pa.RecordBatch]:
    for piece in share:
        for block in pieces.blocks(piece):  # type: ignore[arg-type]
            for start in range(0, len(block.bodies), ROWS_AT_ONCE):
                yield _batch(block.slice(start, ROWS_AT_ONCE))


def _batch(block: Arrived) -> pa.RecordBatch:
    length = len(block.bodies)
    return pa.RecordBatch.from_pydict({
        TOPIC: pa.repeat(pa.scalar(block.topic, pa.string()), length),
        PARTITION: pa.repeat(pa.scalar(block.partition, pa.int32()), length),
        OFFSET: pa.array(block.offsets, pa.int64()), BODY: block.bodies, TIME: block.times,
    })  # fmt: skip


def read(spark: SparkSession, source: Log) -> DataFrame:
    """All that a topic has now."""
    pieces, cores = LogPieces(source), spark.sparkContext.defaultParallelism
    shared = shares(found(pieces, cores), cores)

    def read_log(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rows_of(pieces, shared[number])

    return spark.range(0, len(shared), 1, max(len(shared), 1)).mapInArrow(read_log, COLUMNS)


class _Read(Unread):
    """A topic as a stream that Spark reads itself."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition([piece]) for piece in self.stream.between(start, end)] or [InputPartition([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(self.stream.pieces, partition.value)


def stream(spark: SparkSession, entry: Entry, note: str, rows: int) -> DataFrame:
    name = f"penstock_{uuid.uuid4().hex}"
    pickled = pickle.dumps(LogStream(entry, note, rows, spark.sparkContext.defaultParallelism))
    spark.dataSource.register(stream_source(name, COLUMNS, lambda: _Read(pickled)))
    return spark.readStream.format(name).load()

"""Bodies as rows: position, raw body, and the fields that the route reads."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from penstock.plan.plan import Entry
from penstock.spark.decode import Decoder, decoded_columns, reads_nothing
from penstock.spark.frame import BODY, HEADERS, OFFSET, PARTITION, TIME, TOPIC
from penstock.spark.read.pieces import Block, Pieces, Sized

ROWS_AT_ONCE = 10_000
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_PIECE, _KEPT = 32 << 20, 512 << 20
"""A worker keeps so many free bytes, in pieces of up to so many."""


def row_type(entry: Entry, timed: bool = False) -> spark.StructType:
    """What a source gives to Spark for this entry; with time and headers, if it has any."""
    columns = [
        spark.StructField(TOPIC, spark.StringType()),
        spark.StructField(PARTITION, spark.IntegerType()),
        spark.StructField(OFFSET, spark.LongType()),
        spark.StructField(BODY, spark.BinaryType()),
    ]
    if not reads_nothing(entry):
        columns += decoded_columns(entry).fields
    if timed:
        texts = spark.MapType(spark.StringType(), spark.StringType())
        columns += [spark.StructField(TIME, spark.TimestampType()), spark.StructField(HEADERS, texts)]
    return spark.StructType(columns)


@cache
def settle() -> None:
    """Make this worker ready for many blocks of messages: once per process.

    Spark collects garbage after every task; what a worker has loaded by now is none, and there is a lot of it. The
    memory of one block is to serve the next: to get it from the kernel again costs as much as to decode a field.
    """
    gc.freeze()
    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, _KEPT_PIECE)
        allocator.mallopt(_M_TRIM_THRESHOLD, _KEPT)


class RowMaker:
    """Makes record batches of messages for one entry; pickled to the workers."""

    def __init__(self, entry: Entry) -> None:
        self.decoder = None if reads_nothing(entry) else Decoder(entry)

    def __call__(self, block: Block) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(block.bodies), ROWS_AT_ONCE):
            yield self._batch(block.slice(start, ROWS_AT_ONCE))

    def _batch(self, block: Block) -> pa.RecordBatch:
        length = len(block.bodies)
        columns: dict[str, pa.Array] = {
            TOPIC: pa.repeat(pa.scalar(block.topic, pa.string()), length),
            PARTITION: pa.repeat(pa.scalar(block.partition, pa.int32()), length),
            OFFSET: pa.array(block.offsets, pa.int64()),
            BODY: block.bodies,
        }
        if self.decoder is not None:
            decoded, columns[BODY] = self.decoder(block.bodies)
            columns |= zip(self.decoder.names, decoded, strict=True)
        if block.times is not None:
            columns |= {TIME: block.times, HEADERS: block.headers}
        return pa.RecordBatch.from_pydict(columns)


class RowReader:
    """Reads pieces of a source as rows; pickled to the workers."""

    def __init__(self, entry: Entry, pieces: Pieces[Any]) -> None:
        self.pieces, self.rows = pieces, RowMaker(entry)

    def read(self, share: Sequence[Sized]) -> Iterator[pa.RecordBatch]:
        settle()
        for piece in share:
            for block in self.pieces.blocks(piece):
                yield from self.rows(block)

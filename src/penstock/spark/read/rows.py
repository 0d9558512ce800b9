"""Bodies as rows: position, raw body, and the fields that the route reads."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import numpy
import numpy.typing
import pyarrow as pa
from pyspark.sql import types as spark

from penstock.plan.plan import Entry
from penstock.spark.decode import Decoder, decoded_columns, reads_nothing
from penstock.spark.frame import BODY, OFFSET, PARTITION, TOPIC

ROWS_AT_ONCE = 10_000
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_PIECE, _KEPT = 32 << 20, 512 << 20
"""A worker keeps so many free bytes, in pieces of up to so many."""


def row_type(entry: Entry) -> spark.StructType:
    """What a data source gives to Spark for this entry."""
    columns = [
        spark.StructField(TOPIC, spark.StringType()),
        spark.StructField(PARTITION, spark.IntegerType()),
        spark.StructField(OFFSET, spark.LongType()),
        spark.StructField(BODY, spark.BinaryType()),
    ]
    return spark.StructType(columns if reads_nothing(entry) else [*columns, *decoded_columns(entry).fields])


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
    """Makes record batches of bodies for one entry; pickled to the workers."""

    def __init__(self, entry: Entry) -> None:
        self.decoder = None if reads_nothing(entry) else Decoder(entry)

    def __call__(self, bodies: pa.Array, topic: str, partition: int, offset: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(bodies), ROWS_AT_ONCE):
            some = bodies.slice(start, ROWS_AT_ONCE)
            yield self.batch(some, topic, partition, numpy.arange(offset + start, offset + start + len(some)))

    def batch(
        self, bodies: pa.Array, topic: str, partition: int, offsets: numpy.typing.NDArray[numpy.int64]
    ) -> pa.RecordBatch:
        length = len(bodies)
        position: list[pa.Array] = [
            pa.repeat(pa.scalar(topic, pa.string()), length),
            pa.repeat(pa.scalar(partition, pa.int32()), length),
            pa.array(offsets, pa.int64()),
        ]
        names = [TOPIC, PARTITION, OFFSET, BODY]
        if self.decoder is None:
            return pa.RecordBatch.from_arrays([*position, bodies], names=names)
        decoded, kept = self.decoder(bodies)
        return pa.RecordBatch.from_arrays([*position, kept, *decoded], names=[*names, *self.decoder.names])

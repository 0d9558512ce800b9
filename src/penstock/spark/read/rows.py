"""Bodies as rows: position, raw body, and the fields that the route reads."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache

import numpy
import pyarrow as pa
from pyspark.sql import types as spark

from penstock.plan.plan import Entry
from penstock.spark.decode import Decoder, decoded_columns, reads_nothing
from penstock.spark.frame import BODY, OFFSET, PARTITION, TOPIC

ROWS_AT_ONCE = 10_000


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
def spare_collection() -> None:
    """Spark collects garbage after every task; what a worker has loaded by now is none, and there is a lot of it.

    Once per process: what later tasks leave behind is to be collected.
    """
    gc.freeze()


class RowMaker:
    """Makes record batches of bodies for one entry; pickled to the workers."""

    def __init__(self, entry: Entry) -> None:
        self.decoder = None if reads_nothing(entry) else Decoder(entry)

    def __call__(self, bodies: pa.Array, topic: str, partition: int, offset: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(bodies), ROWS_AT_ONCE):
            yield self._batch(bodies.slice(start, ROWS_AT_ONCE), topic, partition, offset + start)

    def _batch(self, bodies: pa.Array, topic: str, partition: int, offset: int) -> pa.RecordBatch:
        length = len(bodies)
        position: list[pa.Array] = [
            pa.repeat(pa.scalar(topic, pa.string()), length),
            pa.repeat(pa.scalar(partition, pa.int32()), length),
            pa.array(numpy.arange(offset, offset + length)),
        ]
        names = [TOPIC, PARTITION, OFFSET, BODY]
        if self.decoder is None:
            return pa.RecordBatch.from_arrays([*position, bodies], names=names)
        decoded, kept = self.decoder(bodies)
        return pa.RecordBatch.from_arrays([*position, kept, *decoded], names=[*names, *self.decoder.names])

"""All that a source has now, read in one pass by tasks that share it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import BadEndpoint
from penstock.plan.plan import Entry
from penstock.spark.read.pieces import Pieces, Sized
from penstock.spark.read.rows import RowReader, row_type
from penstock.spark.read.shares import shares


def found(pieces: Pieces[Any], cores: int) -> list[Sized]:
    try:
        return pieces.found(cores)
    except OSError as error:  # a file that has gone meanwhile
        raise BadEndpoint(f"cannot read {error.filename or 'a source'}: {error.strerror or error}") from None


def read_once(spark: SparkSession, label: str, entry: Entry, pieces: Pieces[Any]) -> DataFrame:
    """Its rows, read by a function that the physical plan shows as `label`.

    For one pass this is less work than a data source, for which Spark asks Python twice before it begins.
    """
    cores = spark.sparkContext.defaultParallelism
    shared, reader = shares(found(pieces, cores), cores), RowReader(entry, pieces)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from reader.read(shared[number])

    read.__name__ = label
    return spark.range(0, len(shared), 1, max(len(shared), 1)).mapInArrow(read, row_type(entry, pieces.timed))

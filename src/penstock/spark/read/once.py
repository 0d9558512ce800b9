"""Pieces of a source that are read in one pass, a task for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

Piece = TypeVar("Piece")


def read_pieces(
    spark: SparkSession, label: str, pieces: Sequence[Piece], rows: Callable[[Piece], Iterable[pa.RecordBatch]],
    kind: StructType,
) -> DataFrame:  # fmt: skip
    """Their rows, read by a function that the physical plan shows as `label`.

    For one pass this is less work than a data source, for which Spark asks Python twice before it begins.
    """

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rows(pieces[number])

    read.__name__ = label
    return spark.range(0, len(pieces), 1, max(len(pieces), 1)).mapInArrow(read, kind)

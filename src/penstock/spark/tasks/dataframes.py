"""Rows of DataFrames: Spark computes them and hands them, as Arrow batches, to a function that runs the app on them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import RDD
from pyspark.sql import DataFrame, Row

from penstock.spark.read.dataframes import SOURCE
from penstock.spark.tasks.readers import Entering, Reader
from penstock.spark.tasks.task import Item, ReadTask

_ITEM = "item"


@dataclass(frozen=True)
class FrameTask:
    """The function that Spark maps over the Arrow batches of a DataFrame; it runs the app and gives pickled items."""

    task: ReadTask
    sources: Mapping[int, Reader]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for item in self.task.run(self._entering(batches)):
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(item)], pa.binary())], names=[_ITEM])

    def _entering(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Entering]:
        for batch in batches:
            sources = batch.column(SOURCE)
            for number in pc.unique(sources).to_pylist():
                yield from self.sources[number].entering(batch.filter(pc.equal(sources, number)))


def items_of(rows: DataFrame, task: ReadTask, sources: Mapping[int, Reader]) -> RDD[Item]:
    """What the app makes of the rows of DataFrames; `sources` has the readers by number of source."""
    made = FrameTask(replace(task, readers=(), shares=()), sources)
    return rows.mapInArrow(made, f"{_ITEM} BINARY").rdd.mapPartitions(_unpacked)


def _unpacked(rows: Iterable[Row]) -> Iterator[Item]:
    return (pickle.loads(row[_ITEM]) for row in rows)

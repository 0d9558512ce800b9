"""A source without messages: it starts a micro-batch when something that waits is due and nothing else arrives."""

from __future__ import annotations

import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from penstock.spark.read.source import unread
from penstock.spark.state.records import Records


class Ticks:
    """The offset is the time, in microseconds, of the last batch that was started for something due."""

    def __init__(self, directory: str) -> None:
        self.directory, self.finished = directory, False

    def initialOffset(self) -> dict[str, int]:
        return {"time": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: what becomes due later is for another run."""
        self.finished = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        now = time.time_ns() // 1000
        due = None if self.finished else Records(self.directory).earliest()
        return {"time": now} if due is not None and due <= now else start


def with_ticks(data: DataFrame, spark: SparkSession, directory: str) -> DataFrame:
    """The rows of a stream with those of `Ticks`, so that it also runs a batch when only time has passed."""
    return data.unionByName(unread(spark, Ticks(directory), data.schema))

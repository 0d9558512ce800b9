"""PySpark as one writes it by hand, on the session that Penstock runs on: what the same engine does without Penstock.

Messages go to the `noop` sink; an observation in the same job counts them per channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from penstock.bench.peers.fields import SYNONYMS
from penstock.bench.peers.protocol import Job, count_lines, main, write_channels
from penstock.bench.peers.pyspark_frames import channels_of, frame_of, schema
from penstock.spark.session import session

CUSTOMER = (
    "msgId", "type", "CCUSTKEY", "CNAME", "CADDRESS", "CNATIONKEY", "CPHONE", "CACCTBAL", "CMKTSEGMENT", "CCOMMENT",
)  # fmt: skip


class PySpark:
    name = "pyspark"
    version = pyspark.__version__

    def load(self, job: Job) -> LoadedDataFrame:
        return LoadedDataFrame(job)


class LoadedDataFrame:
    """The DataFrame of a job, built again for every iteration."""

    def __init__(self, job: Job) -> None:
        name = SYNONYMS.get(job.workload, job.workload)
        self._inputs = list(job.inputs)
        self._frame = frame_of(name, job, lambda: _customers(job))
        self._channels = channels_of(name)
        self.messages = count_lines(job.inputs)
        self._spark = spark_of(job)

    def run(self) -> Mapping[str, int]:
        observation = Observation()
        counted = self._built().observe(observation, *map(self._count, self._channels))
        counted.write.format("noop").mode("overwrite").save()
        return {channel: int(count) for channel, count in observation.get.items()}

    def write(self, directory: Path) -> Mapping[str, int]:
        return write_channels(directory, self._built().select("channel", "value").collect())

    def close(self) -> None:
        self._spark.catalog.clearCache()

    def _built(self) -> DataFrame:
        return self._frame(self._spark.read.text(self._inputs))

    def _count(self, channel: str) -> Column:
        one = F.lit(1)
        # count_if says the same, and takes longer in an observation.
        return F.count(one if len(self._channels) == 1 else F.when(F.col("channel") == channel, one)).alias(channel)


def spark_of(job: Job) -> SparkSession:
    """The session for so many threads; one with another number is stopped."""
    master = f"local[{job.threads}]"
    running = SparkContext._active_spark_context
    if running is not None and running.master != master:
        running.stop()
    return session("bench-pyspark", master=master)


def _customers(job: Job) -> DataFrame:
    table = spark_of(job).read.schema(schema(CUSTOMER)).json(list(job.tables["customers"])).cache()
    table.count()
    return table


if __name__ == "__main__":
    main(PySpark())

"""The aggregator by size, written with Spark's own `transformWithState` in Python, to compare with."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

SIZE = 10
_PER_KEY = 12


class BySize(StatefulProcessor):
    """Holds texts per key until there are enough of them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.held: Any = handle.getListState("held", "text STRING")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        texts = [row.text for row in self.held.get()] + [row.text for row in rows]
        while len(texts) >= SIZE:
            yield Row(k=key[0], texts=texts[:SIZE])
            texts = texts[SIZE:]
        self.held.put([(text,) for text in texts])

    def close(self) -> None:
        """Nothing to close."""


def rate_of_spark(spark: SparkSession, keys: int) -> float:
    """Messages per second of a stream over so many keys, with the answer checked."""
    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    messages = keys * _PER_KEY
    found: list[int] = []

    def count(batch: DataFrame, number: int) -> None:
        found.append(batch.count())

    with tempfile.TemporaryDirectory() as directory:
        source = f"{directory}/in"
        rows = spark.range(messages).selectExpr(f"id % {keys} AS k", "concat('a message, number ', id) AS text")
        rows.coalesce(2).write.parquet(source)
        data = spark.readStream.schema(rows.schema).parquet(source)
        kept = data.groupBy("k").transformWithState(BySize(), "k BIGINT, texts ARRAY<STRING>", "append", "none")
        started = time.monotonic()
        query = kept.writeStream.foreachBatch(count).trigger(availableNow=True)
        query.option("checkpointLocation", f"{directory}/checkpoint").start().awaitTermination()
        seconds = time.monotonic() - started
    spark.conf.unset(provider)
    assert sum(found) == keys * (_PER_KEY // SIZE), (sum(found), keys)
    return messages / seconds

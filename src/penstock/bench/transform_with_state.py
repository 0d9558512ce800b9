"""The aggregator by size, written with Spark's own `transformWithState` in Python, to compare with.

    python -m penstock.bench.transform_with_state 2000

Prints messages per second over so many keys. A process of its own: Spark's state store wants another file system than
our sessions have. It needs the package protobuf, which pyspark does not ask for.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.spark.session import session

SIZE = 10
_STREAMING = "org.apache.spark.sql.execution.streaming"
SETTINGS = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
}
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
    assert sum(found) == keys * (_PER_KEY // SIZE), (sum(found), keys)
    return messages / seconds


if __name__ == "__main__":
    print(rate_of_spark(session("transform-with-state", conf=SETTINGS), int(sys.argv[1])))

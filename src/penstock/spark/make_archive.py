"""Make the archive of classes: start Spark once, use what routes use, and keep what Java loaded.

Run as `python -m penstock.spark.make_archive`; it is silent, yields to other programs, and does nothing if the
archive exists or is being made.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.spark.archive import archive_file, tried
from penstock.spark.java import Java, find_java
from penstock.spark.session import session


def main() -> None:
    os.nice(19)
    java = find_java()
    file = archive_file(java)
    with open(file.parent / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not file.is_file():
            _make(java, file)


def _make(java: Java, file: Path) -> None:
    os.environ["PENSTOCK_ARCHIVE"] = "off"
    tried(file).touch()
    with tempfile.TemporaryDirectory(prefix="penstock-training-") as scratch:
        unfinished = file.parent / f"unfinished-{os.getpid()}"
        options = [f'"-XX:ArchiveClassesAtExit={unfinished}"', *_base_options(java, file)]
        spark = session("training", "local[*]", conf={"spark.driver.extraJavaOptions": " ".join(options)}, quick=True)
        _use_what_routes_use(spark, Path(scratch))
        gateway = SparkContext._gateway
        assert gateway is not None
        spark.stop()
        # Java ends with its input, and writes the archive while it ends.
        gateway.proc.stdin.close()
        if gateway.proc.wait(timeout=300) == 0:
            os.replace(unfinished, file)
        unfinished.unlink(missing_ok=True)


def _base_options(java: Java, file: Path) -> list[str]:
    """Java's own classes come first: most runtimes bring an archive of them, small ones do not."""
    if list((java.home / "lib").glob("*/classes.jsa")):
        return []
    base = file.with_suffix(".base")
    command = [str(java.home / "bin" / "java"), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    return [f'"-XX:SharedArchiveFile={base}"']


def _use_what_routes_use(spark: SparkSession, scratch: Path) -> None:
    messages = spark.range(100).selectExpr(
        "id", "concat('k', id % 3) AS key", "to_json(struct(id)) AS body", "timestamp_seconds(id) AS at"
    )
    messages.mapInArrow(lambda batches: batches, messages.schema).write.parquet(str(scratch / "in"))
    copied = spark.createDataFrame(messages.toArrow())
    copied.groupBy("key").agg(F.collect_list("body"), F.max("at")).toArrow()
    stream = spark.readStream.schema(messages.schema).parquet(str(scratch / "in"))
    parsed = stream.withColumn("parsed", F.from_json("body", "id long")).filter("parsed.id >= 0")
    distinct = parsed.withWatermark("at", "1 minute").dropDuplicatesWithinWatermark(["key", "id"])
    for name, rows in (("stateless", parsed), ("stateful", distinct)):
        writer = rows.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(scratch / name / "checkpoint"))
        writer.start(str(scratch / name / "out")).awaitTermination()


if __name__ == "__main__":
    main()

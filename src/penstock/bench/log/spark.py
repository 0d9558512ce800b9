"""How fast does Spark read the message log, and how fast is a route from log to log?

    python -m penstock.bench.log spark --scale 1 --repeat 5

Order messages of TPC-H. Reading: all messages of a topic against the same messages in Parquet, both with their
positions, both thrown away by Spark. From log to log: CBR-A of HW-EIP Table 3, two branches into two topics, exactly
once, as a stream; against the same source and the same sinks with `from_json` between them. Every answer is checked
before anything is timed; runs alternate; medians count.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock import App, Json, Log, Route, Void
from penstock.bench.log import rows as log_rows
from penstock.bench.models import ORDER, model_files
from penstock.bench.spine import WORKLOADS, Workload
from penstock.envelope import AT, BODY
from penstock.log import Frame
from penstock.log import Log as OpenLog
from penstock.log.reader import FileReader
from penstock.plan.plan import Entry
from penstock.spark.run import run_batch
from penstock.spark.session import session
from penstock.spark.stream import run_stream
from penstock.spark.write.connections import keeping_connections
from penstock.spark.write.intent import StagedFile
from penstock.spark.write.logs import append, prepared
from penstock.spark.write.outlets import Target, targets
from penstock.spark.write.staging import Staging
from penstock.spark.write.staging_files import META, TaskWriter

READ, STREAM = "read", "log to log"
TARGETS = {"reading against Parquet": 0.8, "log to log, messages/s": 250_000.0, "log to log against from_json": 1.5}
LONGEST_BATCH = 0.5
ROWS_PER_BATCH = 100_000
PARTITIONS, FRAME = 2, 1000
TOPIC = "orders"
_ROUTE: Workload = WORKLOADS[0]
_MANIFEST = pa.schema([("place", pa.int32()), ("path", pa.string()), ("rows", pa.int64()), ("partition", pa.int32())])


@dataclass(frozen=True)
class Sample:
    """One timed run. For streams, `seconds` are those of the micro-batches but for the first, `longest` the longest."""

    what: str
    side: str
    repeat: int
    messages: int
    seconds: float
    longest: float = 0.0

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


@dataclass(frozen=True)
class Inputs:
    """The same messages in a log and in Parquet."""

    log: Path
    parquet: Path
    messages: int


def prepare(directory: Path, scale: float) -> Inputs:
    """Write the messages of the model into both; frames of a thousand, as a busy producer sends them."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    files = model_files(directory.parent, "orders", scale).paths
    count, numbers = 0, itertools.count()
    with OpenLog(directory / "log") as log:
        log.create(TOPIC, PARTITIONS)
        for path in files:
            lines = path.read_bytes().splitlines()
            for start in range(0, len(lines), FRAME):
                log.append(TOPIC, next(numbers) % PARTITIONS, Frame.pack(lines[start : start + FRAME]))
            count += len(lines)
    (directory / "parquet").mkdir()
    reader = FileReader(directory / "log", TOPIC)
    for number in range(PARTITIONS):
        pieces = reader.pieces(number, 0, reader.ends(number).next)
        batches = [piece.frame.to_arrow().select(["offset", "time", "value"]) for piece in pieces]
        table = pa.Table.from_batches(batches)
        table = table.append_column("topic", pa.repeat(TOPIC, len(table)))
        table = table.append_column("partition", pa.repeat(pa.scalar(number, pa.int32()), len(table)))
        pyarrow.parquet.write_table(table, directory / "parquet" / f"{number}.parquet", row_group_size=100_000)
    return Inputs(directory / "log", directory / "parquet", count)


def source(inputs: Inputs) -> Log:
    return Log(TOPIC, Json(ORDER), at=str(inputs.log))


def _entry(inputs: Inputs) -> Entry:
    """Of a route that does not look into the body."""
    return App("read", Route("in", source(inputs)).to("out", Void()), dead_letters=Void()).plan.entries[0]


def read_log(spark: SparkSession, inputs: Inputs) -> DataFrame:
    return log_rows.read(spark, source(inputs))


def read_parquet(spark: SparkSession, inputs: Inputs) -> DataFrame:
    return spark.read.parquet(str(inputs.parquet))


def _thrown_away(data: DataFrame) -> None:
    data.write.format("noop").mode("overwrite").save()


def _offsets(text: str | None) -> dict[str, int]:
    """Of every partition; there are none before the first batch."""
    found: dict[str, int] = json.loads(text) if text and text.startswith("{") else {}
    return found


class _Progress(StreamingQueryListener):
    """Rows and seconds of the micro-batches that had rows."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, float]] = []

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        read = event.progress.sources[0]
        start, end = (_offsets(text) for text in (read.startOffset, read.endOffset))
        rows = sum(end[number] - start.get(number, 0) for number in end)
        if rows:
            self.batches.append((rows, event.progress.durationMs["triggerExecution"] / 1000))

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...


def app_of(inputs: Inputs, out: Path) -> App:
    route = _ROUTE.route(Route(_ROUTE.name, source(inputs)))
    sinks = {name: Log(name, at=str(out)) for name in _ROUTE.channels}
    return App("log-to-log", route, sinks=sinks, dead_letters=Void())


def stream_penstock(spark: SparkSession, inputs: Inputs, out: Path, rows: int) -> None:
    run_stream(app_of(inputs, out / "log"), str(out / "position"), once=True, spark=spark, rows_per_batch=rows)


@keeping_connections()
def stream_by_hand(spark: SparkSession, inputs: Inputs, out: Path, rows: int) -> None:
    """Raw messages from the same source, `from_json`, and the same staging and appending of two branches."""
    plan = app_of(inputs, out / "log").plan
    outlets = prepared(targets(plan))
    places = {target.channel: place for place, target in outlets.items()}
    raw = log_rows.stream(spark, _entry(inputs), str(out / "notes.start"), rows)
    routed = _ROUTE.by_hand(raw.select(F.col(BODY).cast("string").alias("value")))
    at = F.when(F.col("channel") == "cheap", places["cheap"]).otherwise(places["rest"])
    data = routed.select(at.alias(AT), F.col("value").cast("binary").alias(BODY), F.lit(False).alias("written"),
                         F.lit(None).cast("string").alias(META))  # fmt: skip

    def publish(batch: DataFrame, number: int) -> None:
        _by_hand(batch, outlets, Staging(f"by-hand-00000000-{number:09d}", str(out), str(out / "staging")))

    writer = data.writeStream.foreachBatch(publish).option("checkpointLocation", str(out / "position"))
    writer.trigger(availableNow=True).start().awaitTermination()


def _by_hand(batch: DataFrame, outlets: dict[int, Target], staging: Staging) -> None:
    staging.gate.open()
    writer = TaskWriter(outlets, staging)

    def written(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with writer.gate.passed():
            writing = writer.begin()
            for batch in batches:
                writing.write(batch)
            yield pa.RecordBatch.from_pylist(writing.close(), schema=_MANIFEST)

    manifest = batch.mapInArrow(written, "place INT, path STRING, rows BIGINT, partition INT").collect()
    for place, target in outlets.items():
        mine = sorted((row for row in manifest if row.place == place), key=lambda row: row.partition)
        append([StagedFile(target.name, row.path, None, row.rows, row.partition) for row in mine], target, staging.key)
    for target in outlets.values():
        staging.clear(target)


def stored(out: Path) -> dict[str, int]:
    """How many messages are in each of the topics."""
    readers = {name: FileReader(out / "log", name) for name in _ROUTE.channels}
    return {name: sum(reader.ends(number).next for number in range(reader.found().partitions))
            for name, reader in readers.items()}  # fmt: skip


def measure(spark: SparkSession, inputs: Inputs, work: Path, repeat: int, rows: int = ROWS_PER_BATCH) -> list[Sample]:
    """Check, warm up, then alternate."""
    reads = {"log": read_log, "parquet": read_parquet}
    streams = {"penstock": stream_penstock, "from_json": stream_by_hand}
    for name, read in reads.items():
        assert read(spark, inputs).count() == inputs.messages, name
    whole = App("count", _ROUTE.route(Route("in", source(inputs))), dead_letters=Void(),
                sinks={name: Void() for name in _ROUTE.channels})  # fmt: skip
    right = dict(run_batch(whole, spark).summary.delivered)
    assert sum(right.values()) == inputs.messages
    samples: list[Sample] = []
    for number in range(-1, repeat):
        for side, read in reads.items():
            started = time.perf_counter()
            _thrown_away(read(spark, inputs))
            samples.append(Sample(READ, side, number, inputs.messages, time.perf_counter() - started))
        for side, stream in streams.items():
            run = partial(stream, spark, inputs, rows=rows)
            samples.append(_streamed(spark, side, number, work / side, right, run))
        print("warmed up" if number < 0 else f"round {number + 1} of {repeat}", flush=True)
    return [sample for sample in samples if sample.repeat >= 0]


def _streamed(
    spark: SparkSession, side: str, number: int, work: Path, right: dict[str, int], run: Callable[[Path], None]
) -> Sample:
    out, progress = work, _Progress()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    spark.streams.addListener(progress)
    run(out)
    expected = sum(right.values())
    deadline = time.monotonic() + 10
    while sum(rows for rows, _ in progress.batches) < expected and time.monotonic() < deadline:
        time.sleep(0.05)  # the last one is told a moment later
    assert sum(rows for rows, _ in progress.batches) == expected, progress.batches
    spark.streams.removeListener(progress)
    assert stored(out) == right, (side, stored(out), right)
    shutil.rmtree(out)
    counted = progress.batches[1:] or progress.batches
    return Sample(STREAM, side, number, sum(rows for rows, _ in counted), sum(seconds for _, seconds in counted),
                  max(seconds for _, seconds in counted))  # fmt: skip


def rate(samples: list[Sample], what: str, side: str) -> float:
    return statistics.median(sample.rate for sample in samples if (sample.what, sample.side) == (what, side))


def report(samples: list[Sample]) -> None:
    """The table, and every target with what was measured."""
    print(f"\n{'':12}{'':12}{'messages/s':>14}{'longest batch':>16}   (medians)")
    for what, side in dict.fromkeys((sample.what, sample.side) for sample in samples):
        longest = statistics.median(s.longest for s in samples if (s.what, s.side) == (what, side))
        shown = f"{longest * 1000:,.0f} ms" if longest else ""
        print(f"{what:12}{side:12}{rate(samples, what, side):14,.0f}{shown:>16}")
    ours = rate(samples, STREAM, "penstock")
    read = rate(samples, READ, "log") / rate(samples, READ, "parquet")
    found = [read, ours, ours / rate(samples, STREAM, "from_json")]
    print()
    for (text, target), value in zip(TARGETS.items(), found, strict=True):
        print(f"{'met   ' if value >= target else 'MISSED'}  {text}: {value:,.2f} (target {target:,g})")
    longest = statistics.median(s.longest for s in samples if (s.what, s.side) == (STREAM, "penstock"))
    verdict = "met   " if longest < LONGEST_BATCH else "MISSED"
    print(f"{verdict}  log to log, longest batch: {longest:.2f} s (target under {LONGEST_BATCH} s)")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor; 1 is 1.5 million orders")
    parser.add_argument("--repeat", type=int, default=5, help="timed rounds")
    parser.add_argument("--rows", type=int, default=ROWS_PER_BATCH, help="messages of a micro-batch")
    parser.add_argument("--directory", default="build/bench", help="where messages and samples are kept")
    options = parser.parse_args(arguments)
    directory = Path(options.directory).absolute()
    inputs = prepare(directory / "log-spark", options.scale)
    print(f"{inputs.messages:,} messages in a log and in Parquet; timing {options.repeat} rounds", flush=True)
    spark = session("bench-log-spark")
    samples = measure(spark, inputs, directory / "log-spark" / "work", options.repeat, options.rows)
    with open(directory / "log-spark.jsonl", "a", encoding="utf-8") as file:
        file.writelines(json.dumps({**asdict(sample), "time": time.time()}) + "\n" for sample in samples)
    report(samples)

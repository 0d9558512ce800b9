"""How fast is Penstock beside the same job written by hand in PySpark?

    python -m penstock.bench.spine --scale 1 --repeat 5

Order messages of TPC-H, the routes CBR-A, B, C and MT-A of HW-EIP Table 3, in one run: from a DataFrame of raw
strings and from files. Every answer is checked against Arrow before anything is timed; runs alternate between the
two sides; the ratio of the medians counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock import App, Files, Frame, Json, Route, Void, __version__, body
from penstock.bench.models import ORDER, model_files
from penstock.bench.tpch import scale_directory, table
from penstock.endpoints.base import Source
from penstock.spark.run import run_batch
from penstock.spark.session import session

STRINGS, FILES = "strings", "files"
TARGETS = {STRINGS: 0.9, FILES: 2.0}
INVARIANCE = 0.85
_FOUR = "OTOTALPRICE DOUBLE, OORDERPRIORITY STRING, OORDERDATE STRING, OORDERSTATUS STRING"
_SIX = f"OORDERKEY BIGINT, OCUSTKEY BIGINT, {_FOUR}"


@dataclass(frozen=True)
class Workload:
    """One benchmark: the Penstock route, the same by hand, and the counts per channel that are right."""

    name: str
    route: Callable[[Route], Route]
    channels: tuple[str, ...]
    by_hand: Callable[[DataFrame], DataFrame]
    answer: Callable[[pa.Table], dict[str, int]]


def _cheap(price: Any) -> Any:
    return price < 100_000


def _all_four(message: Any) -> Any:
    return (
        _cheap(message.OTOTALPRICE)
        & (message.OORDERPRIORITY == "3-MEDIUM")
        & (message.OORDERDATE < "1970-01-01")
        & (message.OORDERSTATUS == "P")
    )


def _routed_by_hand(schema: str, channel: Callable[[Any], Column]) -> Callable[[DataFrame], DataFrame]:
    def job(data: DataFrame) -> DataFrame:
        parsed = data.withColumn("message", F.from_json("value", schema))
        return parsed.select("value", channel(_Fields()).alias("channel"))

    return job


class _Fields:
    def __getattr__(self, name: str) -> Column:
        return F.col(f"message.{name}")


def _two(test: pa.ChunkedArray, length: int) -> dict[str, int]:
    yes = pc.sum(test).as_py() or 0
    return {"cheap": yes, "rest": length - yes}


def _answer_b(table: pa.Table) -> dict[str, int]:
    tests = [
        pc.less(table["OTOTALPRICE"], 100_000),
        pc.equal(table["OORDERPRIORITY"], "3-MEDIUM"),
        pc.less(table["OORDERDATE"], "1970-01-01"),
        pc.equal(table["OORDERSTATUS"], "P"),
    ]
    together = tests[0]
    for test in tests[1:]:
        together = pc.and_(together, test)
    return _two(together, len(table))


def _answer_c(table: pa.Table) -> dict[str, int]:
    tests = {
        "cheap": pc.less(table["OTOTALPRICE"], 100_000),
        "medium": pc.equal(table["OORDERPRIORITY"], "3-MEDIUM"),
        "old": pc.less(table["OORDERDATE"], "1995-01-01"),
        "pending": pc.equal(table["OORDERSTATUS"], "P"),
    }
    left = pa.chunked_array([pa.array([True] * len(table))])
    counts: dict[str, int] = {}
    for name, test in tests.items():
        counts[name] = pc.sum(pc.and_(left, test)).as_py() or 0
        left = pc.and_(left, pc.invert(test))
    return {**counts, "rest": pc.sum(left).as_py() or 0}


_CASES: dict[str, Callable[[Any], Any]] = {
    "cheap": lambda message: _cheap(message.OTOTALPRICE),
    "medium": lambda message: message.OORDERPRIORITY == "3-MEDIUM",
    "old": lambda message: message.OORDERDATE < "1995-01-01",
    "pending": lambda message: message.OORDERSTATUS == "P",
}
_MAPPING = {
    "order": "OORDERKEY", "customer": "OCUSTKEY", "price": "OTOTALPRICE",
    "priority": "OORDERPRIORITY", "date": "OORDERDATE", "status": "OORDERSTATUS",
}  # fmt: skip


def _channel_c(message: Any) -> Column:
    channel: Column | None = None
    for name, test in _CASES.items():
        channel = F.when(test(message), F.lit(name)) if channel is None else channel.when(test(message), F.lit(name))
    assert channel is not None
    return channel.otherwise(F.lit("rest"))


def _translated_by_hand(data: DataFrame) -> DataFrame:
    parsed = data.withColumn("message", F.from_json("value", _SIX))
    fields = [F.col(f"message.{name}").alias(target) for target, name in _MAPPING.items()]
    return parsed.select(F.to_json(F.struct(*fields)).alias("value"), F.lit("out").alias("channel"))


WORKLOADS = (
    Workload(
        "CBR-A",
        lambda route: route.choice({"cheap": _cheap(body.OTOTALPRICE)}, otherwise="rest"),
        ("cheap", "rest"),
        _routed_by_hand("OTOTALPRICE DOUBLE", lambda m: F.when(_cheap(m.OTOTALPRICE), "cheap").otherwise("rest")),
        lambda table: _two(pc.less(table["OTOTALPRICE"], 100_000), len(table)),
    ),
    Workload(
        "CBR-B",
        lambda route: route.choice({"cheap": _all_four(body)}, otherwise="rest"),
        ("cheap", "rest"),
        _routed_by_hand(_FOUR, lambda m: F.when(_all_four(m), "cheap").otherwise("rest")),
        _answer_b,
    ),
    Workload(
        "CBR-C",
        lambda route: route.choice({name: test(body) for name, test in _CASES.items()}, otherwise="rest"),
        (*_CASES, "rest"),
        _routed_by_hand(_FOUR, _channel_c),
        _answer_c,
    ),
    Workload(
        "MT-A",
        lambda route: route.translate({target: body[name] for target, name in _MAPPING.items()}).to("out"),
        ("out",),
        _translated_by_hand,
        lambda table: {"out": len(table)},
    ),
)


def app_of(workload: Workload, source: Source) -> App:
    route = workload.route(Route(workload.name, source))
    return App(workload.name, route, sinks={name: Void() for name in workload.channels}, dead_letters=Void())


@dataclass(frozen=True)
class Sample:
    """One timed run."""

    workload: str
    input: str
    side: str
    repeat: int
    messages: int
    seconds: float


def main() -> None:
    options = _options()
    directory = Path(options.directory)
    print(f"preparing TPC-H orders at scale {options.scale:g} ...", flush=True)
    orders = table(directory, "orders", options.scale)
    files = str(model_files(directory, "orders", options.scale).paths[0].parent)
    spark = session("bench-spine")
    strings = spark.read.text(files).repartition(spark.sparkContext.defaultParallelism * 2).cache()
    assert strings.count() == len(orders)
    jobs = {
        (workload.name, kind, side): job
        for workload in WORKLOADS
        for kind in (STRINGS, FILES)
        for side, job in _jobs(workload, kind, spark, strings, files).items()
    }
    for workload in WORKLOADS:
        _check(workload, orders, jobs, strings)
    print(f"answers checked on {len(orders):,} messages; timing {options.repeat} rounds", flush=True)
    samples = _measure(jobs, len(orders), options.repeat)
    _store(samples, scale_directory(directory, options.scale) / "spine.jsonl")
    report(samples)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor; 1 is 1.5 million orders")
    parser.add_argument("--repeat", type=int, default=5, help="timed rounds")
    parser.add_argument("--directory", default="build/bench", help="where messages and samples are kept")
    return parser.parse_args()


Job = Callable[[], dict[str, int] | None]


def _jobs(workload: Workload, kind: str, spark: SparkSession, strings: DataFrame, files: str) -> dict[str, Job]:
    source: Source = Frame(strings, Json(ORDER)) if kind == STRINGS else Files(files, Json(ORDER))
    app = app_of(workload, source)

    def penstock() -> dict[str, int]:
        summary = run_batch(app, spark).summary
        assert summary.conserved
        return dict(summary.delivered)

    def by_hand() -> None:
        data = strings if kind == STRINGS else spark.read.text(files)
        workload.by_hand(data).write.format("noop").mode("overwrite").save()

    return {"by hand": by_hand, "penstock": penstock}


def _check(workload: Workload, table: pa.Table, jobs: dict[tuple[str, str, str], Job], strings: DataFrame) -> None:
    expected = workload.answer(table)
    counted = workload.by_hand(strings).groupBy("channel").count().collect()
    found = {row["channel"]: row["count"] for row in counted}
    assert {name: found.get(name, 0) for name in expected} == expected, (workload.name, "by hand", expected, found)
    for kind in (STRINGS, FILES):
        delivered = jobs[workload.name, kind, "penstock"]()
        assert delivered == expected, (workload.name, kind, expected, delivered)


def _measure(jobs: dict[tuple[str, str, str], Job], messages: int, repeat: int) -> list[Sample]:
    samples: list[Sample] = []
    for number in range(-1, repeat):
        for (workload, kind, side), job in jobs.items():
            started = time.perf_counter()
            job()
            seconds = time.perf_counter() - started
            if number >= 0:
                samples.append(Sample(workload, kind, side, number, messages, seconds))
        print("warmed up" if number < 0 else f"round {number + 1} of {repeat}", flush=True)
    return samples


def _store(samples: list[Sample], path: Path) -> None:
    machine = {"python": platform.python_version(), "machine": platform.machine(), "penstock": __version__}
    with open(path, "a", encoding="utf-8") as file:
        for sample in samples:
            file.write(json.dumps({**asdict(sample), **machine, "time": time.time()}) + "\n")


def rate(samples: list[Sample], workload: str, kind: str, side: str) -> float:
    """The median of messages per second."""
    chosen = [s for s in samples if (s.workload, s.input, s.side) == (workload, kind, side)]
    return statistics.median(sample.messages / sample.seconds for sample in chosen)


def report(samples: list[Sample]) -> None:
    """The table, and every target with what was measured."""
    print(f"\n{'':8}{'input':9}{'by hand':>14}{'penstock':>14}{'ratio':>8}   (messages/s, medians)")
    verdicts = []
    for kind, target in TARGETS.items():
        for workload in WORKLOADS:
            hand, ours = (rate(samples, workload.name, kind, side) for side in ("by hand", "penstock"))
            print(f"{workload.name:8}{kind:9}{hand:14,.0f}{ours:14,.0f}{ours / hand:8.2f}")
            verdicts.append((f"{workload.name} from {kind} against by hand", ours / hand, target))
        first = rate(samples, "CBR-A", kind, "penstock")
        for name in ("CBR-B", "CBR-C"):
            verdicts.append(
                (f"{name} against CBR-A from {kind}", rate(samples, name, kind, "penstock") / first, INVARIANCE)
            )
    print()
    for text, found, target in verdicts:
        print(f"{'met   ' if found >= target else 'MISSED'}  {text}: {found:.2f} (target {target})")


if __name__ == "__main__":
    main()

"""What came in is counted where it came in, whatever Spark makes of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from penstock import App, Files, Frame, Json, Memory, Parquet, Route, Void, body, lookup_table
from penstock.endpoints.base import Source
from penstock.endpoints.simple import Rate
from penstock.spark.run import run_batch

ORDER = Json("id BIGINT, tags ARRAY<STRING>")


def received(source: Source, spark: SparkSession) -> int:
    """The count of a run with a copy and a filter, written and not: it must not depend on what happens later."""
    route = Route("r", source).tap("seen").filter(body.id > 2)
    written = App("written", route.to("x", Memory()), sinks={"seen": Memory()}, dead_letters=Memory())
    dropped = App("dropped", route.to("x", Void()), sinks={"seen": Void()}, dead_letters=Void())
    summaries = [run_batch(app, spark).summary for app in (written, dropped)]
    assert all(summary.conserved for summary in summaries)
    assert summaries[0].received == summaries[1].received
    return summaries[0].received


def numbered(number: int) -> bytes:
    return b'{"id": %d}' % number


@pytest.fixture
def bodies(spark: SparkSession) -> DataFrame:
    rows = [(f'{{"id": {number}}}', str(number)) for number in range(10)]
    return spark.createDataFrame([*rows, ("broken", "10")], "value string, id string").repartition(3)


def test_files_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": 5}\nbroken\n')
    (tmp_path / "b.jsonl").write_text('{"id": 2}\n')
    assert received(Files(tmp_path, ORDER), spark) == 4


def test_a_rate_is_counted(spark: SparkSession) -> None:
    assert received(Rate(count=7, message=numbered, format=ORDER), spark) == 7


def test_a_directory_without_files_counts_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    assert received(Files(tmp_path, ORDER), spark) == 0


@pytest.mark.parametrize(
    ("made", "number"),
    [
        (lambda data: data, 11),
        (lambda data: data.limit(4), 4),
        (lambda data: data.orderBy("id").limit(5), 5),
        (lambda data: data.union(data), 22),
        (lambda data: data.filter("id > 3"), 7),
        (lambda data: data.distinct(), 11),
        (lambda data: data.filter("false"), 0),
        (lambda data: data.cache(), 11),
        (lambda data: data.select("value"), 11),
        (lambda data: data.select("value").limit(3).union(data.select("value").limit(2)), 5),
    ],
)
def test_a_dataframe_is_counted_as_it_is(made, number: int, bodies: DataFrame, spark: SparkSession) -> None:  # type: ignore[no-untyped-def]
    data = made(bodies)
    assert received(Frame(data, ORDER), spark) == number
    data.unpersist()


def test_other_python_functions_in_a_dataframe_do_not_count(bodies: DataFrame, spark: SparkSession) -> None:
    def same(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from batches

    same_twice = arrow_udf(same, "string")  # type: ignore[call-overload]
    data = bodies.withColumn("value", same_twice("value")).filter(F.length("value") > 6).limit(9)
    assert received(Frame(data, ORDER), spark) == 9


def test_what_needs_no_decoder_is_counted(bodies: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2, 3, 4, 5])}), tmp_path / "a.parquet")
    assert received(Parquet(tmp_path, "id BIGINT"), spark) == 5
    unread = Route("r", Frame(bodies, ORDER)).to("x", Void())
    summary = run_batch(App("a", unread, dead_letters=Void()), spark).summary
    assert (summary.received, summary.conserved) == (11, True)


def test_sources_are_counted_apart_from_each_other(bodies: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": 5}\n')
    app = App(
        "several",
        Route("files", Files(tmp_path, ORDER)).filter(body.id > 2).to("x", Void()),
        Route("again", Files(tmp_path, ORDER)).filter(body.id > 2).to("x"),
        Route("frame", Frame(bodies, ORDER)).filter(body.id > 2).to("x"),
        Route("memory", Memory([{"id": 1}], ORDER)).to("x"),
        dead_letters=Void(),
    )
    summary = run_batch(app, spark).summary
    assert (summary.received, summary.conserved) == (16, True)


def test_adaptive_planning_changes_nothing(bodies: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": 5}\n')
    names = lookup_table(pa.table({"id": [1, 2], "name": ["one", "two"]}), key="id")
    settings = {"spark.sql.adaptive.enabled": "true", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        app = App(
            "adaptive",
            Route("files", Files(tmp_path, ORDER)).enrich_from(names, on=body.id, into="n").to("x", Memory()),
            Route("frame", Frame(bodies, ORDER)).enrich_from(names, on=body.id, into="n").to("y", Memory()),
            dead_letters=Memory(),
        )
        summary = run_batch(app, spark).summary
        assert (summary.received, summary.conserved) == (13, True)
        assert received(Frame(bodies.distinct(), ORDER), spark) == 11
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))

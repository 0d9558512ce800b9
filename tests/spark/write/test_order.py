"""Exactly once in order: messages of one source partition stand in a sink as they stood in the source."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Parquet, Postgres, Rate, Route, body, call, durable, lookup_table
from penstock.delivery import AT_LEAST_ONCE, BEST_EFFORT, IN_ORDER
from penstock.endpoints.base import Source
from penstock.errors import PenstockError
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from tests.database import Database
from tests.spark.files import records

ORDER = Json("value BIGINT")
COUNT = 5_000


def in_order(of: Source, home: Path, url: str) -> App:
    """Steps that filter, copy, enrich and rewrite, into every sink that keeps order."""
    names = lookup_table([{"last": number, "name": f"n{number}"} for number in range(10)], key="last")
    route = Route("r", of, delivery=IN_ORDER).filter(call("modulo", body.value, 7) != 3).tap("raw")
    return App(
        "ordered",
        route.enrich_from(names, on=call("modulo", body.value, 10)).multicast("lines", "columns", "rows"),
        sinks={"raw": Files(home / "raw"), "lines": Files(home / "lines"), "columns": Parquet(home / "columns"),
               "rows": Postgres(url, "orders")},
        dead_letters=Files(home / "dead"),
    )  # fmt: skip


def sinks(home: Path, postgres: Database) -> dict[str, list[Any]]:
    """(where from, value) in the order in which each sink is read: files by name, rows by position."""
    columns = [
        row
        for path in sorted((home / "columns").glob("*.parquet"))
        for row in parquet.read_table(path, columns=["value", "_id"]).to_pylist()
    ]
    rows = postgres.rows("orders", "value, _id")
    return {
        "raw": [record["value"] for record in records(home / "raw")],
        "lines": [record["value"] for record in records(home / "lines")],
        "columns": [(row["_id"].rpartition("/")[0], row["value"]) for row in columns],
        "rows": [(row["_id"].rpartition("/")[0], row["value"]) for row in rows],
    }


def check(found: dict[str, list[Any]], count: int) -> None:
    expected = [number for number in range(count) if number % 7 != 3]
    for name, values in found.items():
        plain = [value if isinstance(value, int) else value[1] for value in values]
        assert sorted(plain) == expected, name
        if name in ("columns", "rows"):
            for _, mine in groupby(sorted(values, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
                listed = [value for _, value in mine]
                assert listed == sorted(listed), name


@pytest.mark.parametrize(
    "of",
    [Rate(per_second=COUNT, count=COUNT),
     Memory([{"value": number} for number in range(3_000)], ORDER, partitions=3)],
    ids=["rate", "memory"],
)  # fmt: skip
def test_a_batch_keeps_the_order(of: Source, spark: SparkSession, postgres: Database, tmp_path: Path) -> None:
    run_batch(in_order(of, tmp_path, postgres.url), spark)
    found = sinks(tmp_path, postgres)
    check(found, 3_000 if isinstance(of, Memory) else COUNT)
    assert found["lines"] == found["raw"] == sorted(found["raw"])


def test_a_stream_of_files_keeps_the_order(spark: SparkSession, postgres: Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for batch in range(2):
        for part in range(3):
            first = batch * 3_000 + part * 1_000
            lines = "".join(f'{{"value": {number}}}\n' for number in range(first, first + 1_000))
            (tmp_path / "in" / f"{batch}-{part}.jsonl").write_text(lines)
        app = in_order(Files(tmp_path / "in", ORDER), tmp_path, postgres.url)
        run_stream(app, str(tmp_path / "checkpoint"), once=True, spark=spark)
    found = sinks(tmp_path, postgres)
    check(found, 6_000)
    assert found["lines"] == found["raw"] == sorted(found["raw"])


def test_behind_a_resequencer_the_order_is_that_of_its_numbers(
    spark: SparkSession, postgres: Database, tmp_path: Path
) -> None:
    numbers = [number ^ 5 for number in range(400)]
    given = [{"car": f"c{number % 7}", "step": number // 7, "value": number} for number in numbers]
    route = Route("r", Memory(given, Json("car STRING, step BIGINT, value BIGINT"), partitions=2), delivery=IN_ORDER)
    app = App(
        "sequenced",
        route.resequence(body.step, by=body.car, window=50, first=0, timeout="1 hour").multicast("lines", "rows"),
        sinks={"lines": Files(tmp_path / "lines"), "rows": Postgres(postgres.url, "orders")},
        dead_letters=Files(tmp_path / "dead"),
    )
    run_stream(app, str(tmp_path / "checkpoint"), once=True, spark=spark, rows_per_batch=150)
    for found in (records(tmp_path / "lines"), postgres.rows("orders", "car, value")):
        assert sorted(record["value"] for record in found) == list(range(400))
        for car in range(7):
            mine = [record["value"] for record in found if record["car"] == f"c{car}"]
            assert mine == sorted(mine)


def test_a_table_without_a_position_cannot_keep_the_order(postgres: Database, tmp_path: Path) -> None:
    postgres.run("CREATE TABLE orders (value bigint, last bigint, name text)")
    with pytest.raises(PenstockError) as caught:
        run_batch(in_order(Rate(), tmp_path, postgres.url))
    assert str(caught.value) == (
        "BadSchema: table 'orders' has no column '_position' for channel 'rows'\n"
        '  fix  add it: ALTER TABLE "orders" ADD "_position" bigint GENERATED BY DEFAULT AS IDENTITY'
    )


@pytest.mark.parametrize(("level", "lasts"), [(BEST_EFFORT, False), (AT_LEAST_ONCE, True)])
def test_less_than_exactly_once_writes_no_intent(
    level: str, lasts: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(durable, "sync", synced.append)
    app = App("a", Route("r", Rate(count=10), delivery=level).to("x", Files(tmp_path / "x")), dead_letters=Memory())
    checkpoint = tmp_path / "checkpoint"
    run_stream(app, str(checkpoint), once=True, spark=spark)
    assert not (checkpoint / "penstock-batches").exists()
    assert (str(tmp_path / "x") in synced) == lasts
    before = {path.name: path.read_bytes() for path in (tmp_path / "x").iterdir()}
    (checkpoint / "commits" / "0").unlink()
    result = run_stream(app, str(checkpoint), once=True, spark=spark)
    assert result.summary.delivered == {"x": 10}
    assert {path.name: path.read_bytes() for path in (tmp_path / "x").iterdir()} == before

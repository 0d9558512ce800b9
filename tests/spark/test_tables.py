"""Tables that are too large to travel with the plan: tasks find them in files."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Route, body, lookup_table
from penstock.endpoints import lookup
from penstock.endpoints.lookup import LookupTable
from penstock.errors import BadMachine
from penstock.kernel.flow import Flow
from penstock.spark.run import run_batch
from penstock.spark.ship import kept_directory
from penstock.spark.stream import run_stream
from penstock.spark.tables import sent
from penstock.testing import run


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "SMALL_BYTES", 0)


def names() -> LookupTable:
    return lookup_table([{"key": f"k{n}", "name": f"name {n}"} for n in range(5000)], "key", name="names")


def enriching(tmp_path: Path, table: LookupTable) -> App:
    (tmp_path / "in").mkdir()
    for file in range(3):
        lines = [json.dumps({"k": f"k{n * 37 % 6000}" if n % 10 else None, "n": n}) for n in range(400)]
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    route = Route("r", Files(str(tmp_path / "in"), Json("k STRING, n BIGINT")), delivery="exactly once in order")
    return App("a", route.enrich_from(table, body.k, missing="dead").to("out", Files(str(tmp_path / "out"))),
               dead_letters=Files(str(tmp_path / "dead")))  # fmt: skip


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "stream"])
def test_an_app_does_what_the_reference_does(streaming: bool, spark: SparkSession, tmp_path: Path) -> None:
    app = enriching(tmp_path, names())
    messages = [line for file in sorted((tmp_path / "in").iterdir()) for line in file.read_text().splitlines()]
    if streaming:
        summary = run_stream(app, str(tmp_path / "position"), once=True, spark=spark, bytes_per_batch=10_000).summary
        assert summary.batches > 1
    else:
        summary = run_batch(app, spark).summary
    lines = [line for file in sorted((tmp_path / "out").glob("*.jsonl")) for line in file.read_text().splitlines()]
    right = run(app, messages)
    assert [json.loads(line) for line in lines] == right.bodies("out")
    assert (summary.received, summary.dead, summary.conserved) == (1200, right.summary.dead, True)


def files() -> set[str]:
    return {name for name in os.listdir(kept_directory()) if name.startswith("table-")}


def test_the_plan_stays_small_and_the_file_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    gc.collect()
    table, before = names(), files()
    app = enriching(tmp_path, table)
    for _ in range(2):
        moved = sent(spark, app.plan)
        assert len(cloudpickle.dumps(Flow(moved))) < len(cloudpickle.dumps(Flow(app.plan))) - 100_000
        assert len(files() - before) == 1


def test_the_file_goes_with_the_table(spark: SparkSession) -> None:
    gc.collect()
    table, before = names(), files()
    app = App("a", Route("r", Memory([{"k": "k1"}], Json("k STRING"))).enrich_from(table, body.k).to("out", Memory()))
    assert [json.loads(str(one.raw, "utf-8")) for one in run_batch(app, spark).channels["out"]] == [
        {"k": "k1", "name": "name 1"}
    ]
    assert len(files() - before) == 1
    del table, app
    gc.collect()
    assert files() <= before


def test_a_disk_without_room_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.tables.kept_directory", lambda: str(tmp_path / "gone"))
    app = enriching(tmp_path, names())
    with pytest.raises(BadMachine, match=r"cannot write the table names to .*gone.*\n  fix  set TMPDIR"):
        run_batch(app, spark)

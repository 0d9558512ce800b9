"""Every workload is a route that gives the right answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.bench import check, models
from penstock.bench.answers import expected
from penstock.bench.workload import WORKLOADS
from penstock.bench.workloads import APPS
from penstock.bench.workloads.ends import Ends
from penstock.spark.run import run_batch
from penstock.testing import run

SCALE = 0.01
ON_SPARK = ("RT-1-B", "RT-2-D", "RT-5-C", "MT-3-C", "MDS-1-B", "MDS-2-10", "cars-early-out")


def inputs_of(workload: str, directory: Path) -> tuple[list[Path], dict[str, list[Path]]]:
    wanted = WORKLOADS[workload]
    model = "sequences-10" if wanted.model.startswith("sequences") else wanted.model
    tables = {name: list(models.model_files(directory, name, SCALE).paths) for name in wanted.tables}
    return list(models.model_files(directory, model, SCALE, 100).paths), tables


def ends_of(workload: str, directory: Path, out: Path | None = None) -> Ends:
    paths, tables = inputs_of(workload, directory)
    named = {name: [str(path) for path in files] for name, files in tables.items()}
    return Ends(WORKLOADS[workload].model, f"{paths[0].parent}/*.jsonl", named, out)


def test_every_workload_has_a_route() -> None:
    assert set(APPS) == set(WORKLOADS)
    for name, workload in WORKLOADS.items():
        if not workload.tables:
            app = APPS[name](Ends(workload.model, "/nowhere/*.jsonl"))
            assert {outlet.channel for outlet in app.plan.outlets} - {"dead"} >= set(workload.channels), name


@pytest.mark.parametrize("workload", [name for name in APPS if not name.startswith("MDS-2-")])
def test_the_reference_gives_the_right_answer(workload: str, tables: Path) -> None:
    paths, beside = inputs_of(workload, tables)
    messages = [message for path in paths for message in check.read_messages(path)]
    known = {name: [row for path in files for row in check.read_messages(path)] for name, files in beside.items()}
    result = run(APPS[workload](ends_of(workload, tables)), messages)
    found = {channel: result.bodies(channel) for channel in WORKLOADS[workload].channels}
    assert list(check.differences(workload, expected(workload, messages, known), found)) == []
    assert result.dead == []


@pytest.mark.parametrize("workload", ON_SPARK)
def test_spark_gives_the_right_answer(workload: str, tables: Path, tmp_path: Path, spark: SparkSession) -> None:
    paths, beside = inputs_of(workload, tables)
    summary = run_batch(APPS[workload](ends_of(workload, tables, tmp_path)), spark).summary
    assert summary.conserved
    assert check.check(workload, paths, tmp_path, beside) == []

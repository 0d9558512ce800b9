"""The benchmark of Spark's ends of the log, over few messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.bench.log import spark as logspark


@pytest.mark.long
def test_a_short_run_checks_its_answers_and_reports(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = logspark.prepare(tmp_path / "log-spark", 0.001)
    samples = logspark.measure(spark, inputs, tmp_path / "work", repeat=1, rows=600)
    assert {(sample.what, sample.side) for sample in samples} == {
        ("read", "log"), ("read", "parquet"), ("log to log", "penstock"), ("log to log", "from_json"),
    }  # fmt: skip
    logspark.report(samples)
    said = capsys.readouterr().out
    assert all(text in said for text in logspark.TARGETS)

"""The benchmarks, short: they run, and check their answers before they time anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.bench import memory, spine, state


@pytest.mark.long
def test_the_main_path(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["spine", "--scale", "0.001", "--repeat", "1", "--directory", str(tmp_path)])
    spine.main()
    said = capsys.readouterr().out
    assert "answers checked on 1,500 messages" in said
    assert all(workload.name in said for workload in spine.WORKLOADS)
    assert len((tmp_path / "scale-0.001" / "spine.jsonl").read_text().splitlines()) == 16


@pytest.mark.long
def test_steps_that_remember(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--keys", "300", "--messages", "2000", "--compare", "0", "--directory", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["state", *options])
    state.main()
    said = capsys.readouterr().out
    assert "aggregator at 300 keys" in said
    assert "idempotent receiver at 300 keys" in said


def test_memory_is_noted_after_every_batch(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    samples = memory.measure(seconds=1, per_second=100)
    assert samples[-1].messages > 0
    assert min(samples[-1].driver, samples[-1].java) > 50
    memory.report(samples * 3)
    assert "target at most 1.1" in capsys.readouterr().out

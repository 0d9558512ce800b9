"""Samples survive crashes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench import rundirectory
from penstock.bench.rundirectory import RIGHT, WRONG, Verdict
from penstock.bench.samples import Sample, append, read, repair
from penstock.bench.schedule import Cell, Settings
from penstock.errors import BadBenchmark

SAMPLE = Sample(
    run="r", peer="camel", peer_version="4", workload="RT-1-A", users=2, batch=None, size=None, cores=2,
    messages=1000, bytes=250_000, fork=0, iteration=0, warmup=False, seconds=0.5, delivered=1000, filtered=0,
    fork_seconds=1.0, load_seconds=0.1, work_seconds=2.0, verify_seconds=0.1, machine="m", versions="v",
    commit=None, time=1.0, spelling="spaced",
)  # fmt: skip


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    samples = [replace(SAMPLE, iteration=number) for number in range(3)]
    append(tmp_path / "samples.jsonl", samples[:2])
    append(tmp_path / "samples.jsonl", samples[2:])
    assert read(tmp_path / "samples.jsonl") == samples


def test_no_file_is_no_samples(tmp_path: Path) -> None:
    assert read(tmp_path / "samples.jsonl") == []


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    append(path, [SAMPLE, replace(SAMPLE, iteration=1)])
    path.write_text(path.read_text()[:-20])
    assert read(path) == [SAMPLE]


def test_fields_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    append(path, [SAMPLE])
    path.write_text(path.read_text().replace('{"run"', '{"colour": "blue", "run"'))
    assert read(path) == [SAMPLE]


def test_a_fork_of_which_a_part_is_stored_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    whole = [replace(SAMPLE, iteration=number) for number in range(2)]
    append(path, [*whole, replace(SAMPLE, fork=1)])
    assert repair(path, 2) == whole
    assert read(path) == whole


def test_rate_and_cell_of_a_sample() -> None:
    assert SAMPLE.rate == 2000
    assert SAMPLE.cell == Cell("RT-1-A", users=2)


def test_a_run_keeps_its_settings_and_the_last_word_of_all(tmp_path: Path) -> None:
    settings = Settings(("BL",), ("camel",), users=(0, 1))
    run = rundirectory.create(tmp_path, settings)
    run.add_verdict(Verdict("camel", "BL", WRONG, "one is missing"))
    run.add_verdict(Verdict("camel", "BL", RIGHT))
    run.add_failure("camel", Cell("BL", size=3), 1, "too slow")
    again = rundirectory.open_run(tmp_path)
    assert again.settings == settings
    assert again.facts["machine"]
    assert again.verdicts() == {("camel", "BL"): Verdict("camel", "BL", RIGHT)}
    assert again.failures()["camel", Cell("BL", size=3)].reason == "too slow"


def test_a_torn_verdict_does_not_spoil_the_next(tmp_path: Path) -> None:
    run = rundirectory.create(tmp_path, Settings(("BL",), ("camel",)))
    run.add_verdict(Verdict("camel", "BL", RIGHT))
    with open(run.path / "verdicts.jsonl", "a") as file:
        file.write('{"peer": "ca')
    again = rundirectory.reopen(tmp_path, run.name)
    again.add_verdict(Verdict("python", "BL", RIGHT))
    assert set(again.verdicts()) == {("camel", "BL"), ("python", "BL")}


def test_an_unknown_run_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadBenchmark, match="there is no run in"):
        rundirectory.open_run(tmp_path)
    name = rundirectory.create(tmp_path, Settings(("BL",), ("camel",))).name
    with pytest.raises(BadBenchmark, match=f"there is no run 'x' in .*\n  fix  known: {name}"):
        rundirectory.open_run(tmp_path, "x")
    assert rundirectory.create(tmp_path, Settings(("BL",), ("camel",))).name != name

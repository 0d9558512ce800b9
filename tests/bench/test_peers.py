"""The peers beside Penstock: they answer right what they have, and say why they do not have the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.check import check
from penstock.bench.models import model_files
from penstock.bench.peers import PEERS
from penstock.bench.workload import WORKLOADS

MESSAGES = 200
SCALE = 0.01
TOO_LONG = ("MDS-2-1000", "MDS-2-10000", "MDS-2-100000")
CARS = [name for name in WORKLOADS if name.startswith("cars-")]
REDELIVERY = [name for name in WORKLOADS if name.startswith("MDS-1-")]
MISSING = {"camel": CARS, "python": CARS, **dict.fromkeys(("duckdb", "polars", "pyspark"), REDELIVERY + CARS)}
FEW = ("BL", "RT-1-B", "RT-2-D", "RT-4-B", "RT-5-A", "RT-6-A", "MT-3-C", "MDS-2-10", "MDS-3-B", "AGG-A", "SpAgg-B")
"""Spark takes seconds for each: of PySpark only these, one of a kind, and what it does not have."""
UNCHANGED = ("BL", "RT-1-", "RT-2-", "RT-3-", "RT-4-", "MDS-2-", "MDS-3-", "LB-", "JR-")
ODD = ("BL", "RT-1-A", "RT-5-B", "RT-5-C", "RT-6-A", "MT-3-C", "CE-A", "SpAgg-B")
ODD_COMMENTS = ('a "quoted" word', "back\\slash", "Zürich, 東京", "tab\tand\nline\u2028", "", "{[]}:',")


@dataclass(frozen=True)
class Answers:
    """What a peer printed, and below `directory` what it delivered in each job."""

    peer: str
    directory: Path
    jobs: list[dict[str, Any]]
    lines: list[dict[str, Any]]


def files_of(directory: Path, model: str, messages: int | None = MESSAGES) -> list[str]:
    return [str(path) for path in model_files(directory, model, SCALE, messages).paths]


def odd_orders(directory: Path, orders: list[str]) -> list[str]:
    """A few orders whose texts are hard to keep."""
    path = directory / "odd.jsonl"
    lines = Path(orders[0]).read_text(encoding="utf-8").splitlines()
    changed = [{**json.loads(line), "OCOMMENT": text} for line, text in zip(lines, ODD_COMMENTS, strict=False)]
    text = "".join(json.dumps(message, separators=(",", ":"), ensure_ascii=False) + "\n" for message in changed)
    path.write_text(text, encoding="utf-8")
    return [str(path)]


def jobs_of(peer: str, tables: Path, directory: Path) -> list[dict[str, Any]]:
    """Every workload and the odd messages in check mode, and one that is timed."""
    common = {"tables": {"customers": files_of(tables, "customers", None)}, "warmup": 1, "iterations": 2, "threads": 2}
    jobs = [
        {"workload": name, "inputs": files_of(tables, workload.model), "check_out": str(directory / name), **common}
        for name, workload in WORKLOADS.items()
        if name not in TOO_LONG and (peer != "pyspark" or name in (*FEW, "RT-1-A-filter", *MISSING[peer]))
    ]
    odd = odd_orders(directory, files_of(tables, "orders"))
    jobs += [{"workload": name, "inputs": odd, "check_out": str(directory / f"odd-{name}"), **common} for name in ODD]
    return [*jobs, {"workload": "RT-1-A-filter", "inputs": files_of(tables, "orders"), "check_out": None, **common}]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.long] * (name in ("camel", "pyspark"))) for name in MISSING],
)
def answers(request: pytest.FixtureRequest, tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """One process for all jobs."""
    peer = PEERS[request.param]
    if reason := peer.availability() or peer.prepare(print):
        pytest.skip(f"{peer.title}: {reason}")
    directory = tmp_path_factory.mktemp(request.param)
    jobs = jobs_of(request.param, tables, directory)
    arguments = directory / "jobs.json"
    arguments.write_text(json.dumps(jobs))
    command = peer.command(arguments)
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PENSTOCK_QUICK": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return Answers(request.param, directory, jobs, [json.loads(line) for line in done.stdout.splitlines()])


def test_every_workload_is_answered_right(answers: Answers) -> None:
    checked = [line["checked"] for line in answers.lines if "checked" in line]
    present = [job for job in answers.jobs[:-1] if job["workload"] not in MISSING[answers.peer]]
    assert len(checked) == len(present)
    for job, counts in zip(present, checked, strict=True):
        inputs, out = [Path(path) for path in job["inputs"]], Path(job["check_out"])
        tables = {name: [Path(path) for path in paths] for name, paths in job["tables"].items()}
        assert check(job["workload"], inputs, out, tables) == [], out.name
        found = delivered(out)
        assert {channel: len(lines) for channel, lines in found.items() if lines} == counts, out.name


def test_what_is_passed_on_keeps_its_bytes(answers: Answers) -> None:
    for job in answers.jobs[:-1]:
        if job["workload"].startswith(UNCHANGED):
            known = {line for path in job["inputs"] for line in Path(path).read_bytes().splitlines()}
            for channel, lines in delivered(Path(job["check_out"])).items():
                assert known.issuperset(lines), (job["check_out"], channel)


def test_what_is_missing_has_a_reason(answers: Answers) -> None:
    reasons = {line["workload"]: line["missing"] for line in answers.lines if "missing" in line}
    assert sorted(reasons) == sorted(MISSING[answers.peer])
    assert all(len(reason) > 10 for reason in reasons.values())


def test_iterations_are_timed_and_counted(answers: Answers) -> None:
    timed = [line for line in answers.lines if "iteration" in line]
    cheap = len(delivered(answers.directory / "RT-1-A-filter")["out"])
    assert [line["warmup"] for line in timed] == [True, False, False]
    for line in timed:
        assert (line["messages"], line["delivered"], line["filtered"]) == (MESSAGES, {"out": cheap}, MESSAGES - cheap)
        assert line["seconds"] > 0
    assert answers.lines[-4]["ready"]["load_seconds"] > 0


def test_one_job_that_fails_says_its_error(tmp_path: Path) -> None:
    arguments = tmp_path / "job.json"
    arguments.write_text(json.dumps({"workload": "BL", "inputs": [str(tmp_path / "nothing.jsonl")]}))
    done = subprocess.run([sys.executable, "-m", "penstock.bench.peers.python", str(arguments)], capture_output=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"].startswith("FileNotFoundError")


def delivered(directory: Path) -> dict[str, list[bytes]]:
    """The lines of every channel, in the order of the files."""
    outputs: dict[str, list[bytes]] = {}
    for path in sorted(directory.rglob("*.jsonl")):
        channel = path.stem if path.parent == directory else path.parent.name
        outputs.setdefault(channel, []).extend(path.read_bytes().split(b"\n")[:-1])
    return outputs

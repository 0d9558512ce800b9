"""The directory of one run: its settings, samples, checked answers and failures."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.bench import machine
from penstock.bench import samples as store
from penstock.bench.samples import Sample
from penstock.bench.schedule import Cell, Settings
from penstock.bench.spelling import COMPACT
from penstock.errors import BadBenchmark, did_you_mean

RIGHT, WRONG, MISSING, FAILED = "right", "wrong", "missing", "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a peer answers a workload rightly, and why not: it is wrong, does not have it, or failed."""

    peer: str
    workload: str
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A fork that gave no samples."""

    peer: str
    workload: str
    users: int | None
    batch: int | None
    size: int | None
    cores: int
    fork: int
    reason: str
    spelling: str = COMPACT

    @property
    def cell(self) -> Cell:
        return Cell(self.workload, self.users, self.batch, self.size, self.cores, self.spelling)


@dataclass(frozen=True, slots=True)
class Run:
    """`<directory>/runs/<name>/` with run.json, samples.jsonl, verdicts.jsonl and failures.jsonl."""

    path: Path
    settings: Settings
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def directory(self) -> Path:
        """Where the messages are, and all runs."""
        return self.path.parent.parent

    def log(self, name: str) -> Path:
        """What a process says on its standard error goes here."""
        logs = self.path / "logs"
        logs.mkdir(exist_ok=True)
        return logs / f"{name}.log"

    def samples(self) -> list[Sample]:
        return store.read(self.path / "samples.jsonl")

    def add_samples(self, samples: Iterable[Sample]) -> None:
        store.append(self.path / "samples.jsonl", samples)

    def verdicts(self) -> dict[tuple[str, str], Verdict]:
        """The last word on every peer and workload."""
        found = [Verdict(**line) for line in _lines(self.path / "verdicts.jsonl")]
        return {(verdict.peer, verdict.workload): verdict for verdict in found}

    def add_verdict(self, verdict: Verdict) -> None:
        _append(self.path / "verdicts.jsonl", asdict(verdict))

    def failures(self) -> dict[tuple[str, Cell], Failure]:
        """The last failure of every peer and cell."""
        found = [Failure(**line) for line in _lines(self.path / "failures.jsonl")]
        return {(failure.peer, failure.cell): failure for failure in found}

    def add_failure(self, peer: str, cell: Cell, fork: int, reason: str) -> None:
        _append(self.path / "failures.jsonl", asdict(Failure(peer, **asdict(cell), fork=fork, reason=reason)))


def create(directory: Path, settings: Settings) -> Run:
    """A new run, named after the time."""
    now = time.time()
    moment = time.strftime("%Y-%m-%d-%H%M%S", time.localtime(now))
    before = sum(name.startswith(moment) for name in run_names(directory))
    name = f"{moment}-{before + 1}" if before else moment
    path = directory / "runs" / name
    path.mkdir(parents=True)
    facts = {
        "started": now,
        "machine": machine.machine(),
        "versions": machine.versions(),
        "commit": machine.commit(),
    }
    (path / "run.json").write_text(
        json.dumps({**facts, "settings": settings.as_dict()}, indent=2) + "\n", encoding="utf-8"
    )
    return Run(path, settings, facts)


def open_run(directory: Path, name: str | None = None) -> Run:
    """The run of this name; without one, the last that was started."""
    names = run_names(directory)
    if not names:
        raise BadBenchmark(f"there is no run in {directory / 'runs'}", None, "penstock bench run starts one")
    chosen = names[-1] if name is None else name
    if chosen not in names:
        raise BadBenchmark(f"there is no run {chosen!r} in {directory / 'runs'}", None, did_you_mean(chosen, names))
    path = directory / "runs" / chosen
    facts = json.loads((path / "run.json").read_text(encoding="utf-8"))
    return Run(path, Settings.from_dict(facts.pop("settings")), facts)


def reopen(directory: Path, name: str) -> Run:
    """A run that goes on: forks of which only a part was stored are forgotten."""
    run = open_run(directory, name)
    store.repair(run.path / "samples.jsonl", run.settings.iterations)
    for file in ("verdicts.jsonl", "failures.jsonl"):
        _end_line(run.path / file)
    return run


def run_names(directory: Path) -> list[str]:
    return sorted(path.parent.name for path in (directory / "runs").glob("*/run.json"))


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1] if line]


def _append(path: Path, record: dict[str, Any]) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _end_line(path: Path) -> None:
    """Cut off a last line that was torn by a crash, so that the next does not continue it."""
    if path.exists():
        whole = path.read_bytes()
        os.truncate(path, whole.rfind(b"\n") + 1)

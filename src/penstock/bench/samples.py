"""Every iteration that was ever timed, as a line of JSON: appended and flushed to the disk fork by fork."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from penstock.bench.schedule import Cell
from penstock.bench.spelling import COMPACT


@dataclass(frozen=True, slots=True)
class Sample:
    """One iteration, with all that is needed to understand it later.

    The seconds of fork, load, work and verify are the phases of the whole fork (figure 3 of EIPBench), so they are the
    same in all its iterations. Without a spelling it is of a run that knew only compact JSON.
    """

    run: str
    peer: str
    peer_version: str
    workload: str
    users: int | None
    batch: int | None
    size: int | None
    cores: int
    messages: int
    bytes: int
    fork: int
    iteration: int
    warmup: bool
    seconds: float
    delivered: int
    filtered: int
    fork_seconds: float
    load_seconds: float
    work_seconds: float
    verify_seconds: float
    machine: str
    versions: str
    commit: str | None
    time: float
    spelling: str = COMPACT

    @property
    def cell(self) -> Cell:
        return Cell(self.workload, self.users, self.batch, self.size, self.cores, self.spelling)

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds


_FIELDS = {field.name for field in fields(Sample)}


def append(path: Path, samples: Iterable[Sample]) -> None:
    """Write the samples of one fork: after this they survive a crash."""
    text = "".join(json.dumps(asdict(sample)) + "\n" for sample in samples)
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Sample]:
    """All samples; a last line that was torn by a crash, and fields of a later version, are left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [_sample(line) for line in lines[:-1] if line]


def _sample(line: str) -> Sample:
    return Sample(**{name: value for name, value in json.loads(line).items() if name in _FIELDS})


def repair(path: Path, expected: int) -> list[Sample]:
    """Forget forks of which not all `expected` iterations are there, so that they can be run again; what is left.

    Iterations that warm up do not count.
    """
    samples = read(path)
    count = Counter((s.peer, s.cell, s.fork) for s in samples if not s.warmup)
    whole = [s for s in samples if count[s.peer, s.cell, s.fork] >= expected]
    if path.exists():
        staging = path.with_suffix(".partial")
        staging.unlink(missing_ok=True)
        append(staging, whole)
        staging.replace(path)
    return whole

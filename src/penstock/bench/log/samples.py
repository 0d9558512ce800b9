"""Every measurement as a line of JSON, with all that is needed to understand it later."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from penstock.bench.machine import commit, machine, versions


@dataclass(frozen=True, slots=True)
class Sample:
    """`setting` is the bytes of a batch, or how many publishers there were; waits are in seconds."""

    what: str
    side: str
    mode: str
    payload: int
    setting: int
    round: int
    messages: int
    seconds: float
    median_wait: float = 0.0
    p99_wait: float = 0.0
    version: str = ""
    machine: str = ""
    versions: str = ""
    commit: str | None = None
    time: float = 0.0

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds


@dataclass(frozen=True)
class Absent:
    """What was not measured, and why."""

    what: str
    side: str
    mode: str
    reason: str


_FIELDS = {one.name for one in fields(Sample)}


@dataclass
class Samples:
    """The samples of one run, and the file that they are in."""

    path: Path
    all: list[Sample] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=lambda: {
        "machine": machine(), "versions": versions(), "commit": commit(),
    })  # fmt: skip

    def add(self, sample: Sample) -> None:
        whole = {**asdict(sample), **self.facts, "time": time.time()}
        self.all.append(Sample(**whole))
        self._write(whole)

    def lack(self, absent: Absent) -> None:
        if absent not in self.absent:
            self.absent.append(absent)
            self._write({"absent": asdict(absent)})

    def _write(self, line: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, path: Path) -> Samples:
        """Those of a file; a last line that was torn, and fields of a later version, are left out."""
        found = cls(path, facts={})
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            known = json.loads(line)
            if "absent" in known:
                found.absent.append(Absent(**known["absent"]))
            else:
                found.all.append(Sample(**{name: value for name, value in known.items() if name in _FIELDS}))
        return found

    def matching(self, **wanted: object) -> Iterator[Sample]:
        return (one for one in self.all if all(getattr(one, name) == value for name, value in wanted.items()))

    def rate(self, **wanted: object) -> float | None:
        """The median of the rates, or None if there are none."""
        return median(one.rate for one in self.matching(**wanted))

    def wait(self, part: str, **wanted: object) -> float | None:
        """The median over the rounds of `median_wait` or `p99_wait`."""
        return median(getattr(one, part) for one in self.matching(**wanted))

    def ratio(self, ours: dict[str, object], theirs: dict[str, object]) -> float | None:
        mine, other = self.rate(**ours), self.rate(**theirs)
        return None if mine is None or other is None else mine / other

    def values(self, name: str, **wanted: object) -> list[Any]:
        """The different values of a field, in the order in which they were measured."""
        return list(dict.fromkeys(getattr(one, name) for one in self.matching(**wanted)))


def median(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None

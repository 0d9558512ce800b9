"""What the Python peers share: the argument file, the loop of warm-up and iterations, and the JSON lines on stdout.

The argument file holds one job or a list of jobs; in a list every line that is printed says its workload, and a job
that fails does not stop the others. `users` and `batch` mean nothing to these peers: they take what is there at once.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TextIO

FILTERS = ("RT-1-A-filter", "RT-2-D-filter", "MDS-3-A", "MDS-3-B")


@dataclass(frozen=True)
class Job:
    """One workload on some files, as the harness asks for it."""

    workload: str
    inputs: tuple[str, ...]
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warmup: int = 1
    iterations: int = 3
    threads: int = 2
    users: int = 1
    batch: int | None = None
    check_out: str | None = None
    warmup_seconds: float = 0.0

    @property
    def size(self) -> int:
        """The number at the end of a name like LB-3 or MDS-2-100."""
        return int(self.workload.rpartition("-")[2])


class Missing(Exception):
    """The peer does not have the workload, for the reason that is the argument."""


class Loaded(Protocol):
    """A job that is ready to run as often as one likes."""

    messages: int

    def run(self) -> Mapping[str, int]:
        """Send every message through once, and answer how many came out at each channel."""

    def write(self, directory: Path) -> Mapping[str, int]:
        """The same, with what came out written below `directory`."""

    def close(self) -> None: ...


class Peer(Protocol):
    """A system that can be measured."""

    name: str
    version: str

    def load(self, job: Job) -> Loaded:
        """Do what is not timed. Raises Missing for a workload that the system does not have."""


def main(peer: Peer) -> None:
    """Run the jobs of the argument file and exit: with 1 if any of them failed."""
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.exit(run_jobs(peer, given, sys.stdout))


def run_jobs(peer: Peer, given: dict[str, Any] | list[dict[str, Any]], output: TextIO) -> int:
    """Run one job or several, print what happens, and return the exit code."""
    failed = False
    for arguments in given if isinstance(given, list) else [given]:
        named = {"workload": arguments["workload"]} if isinstance(given, list) else {}
        say = _Printer(output, named)
        try:
            _run(peer, job_of(arguments), say)
        except Missing as reason:
            say(missing=str(reason))
        except Exception as error:
            failed = True
            say(error=f"{type(error).__name__}: {error}")
    return int(failed)


def job_of(arguments: Mapping[str, Any]) -> Job:
    known = {entry.name: arguments[entry.name] for entry in fields(Job) if entry.name in arguments}
    tables = {name: tuple(files) for name, files in (arguments.get("tables") or {}).items()}
    return Job(**{**known, "inputs": tuple(arguments["inputs"]), "tables": tables})


@dataclass(frozen=True)
class _Printer:
    output: TextIO
    named: Mapping[str, str]

    def __call__(self, **line: Any) -> None:
        print(json.dumps({**self.named, **line}), file=self.output, flush=True)


def _run(peer: Peer, job: Job, say: _Printer) -> None:
    started = time.perf_counter()
    with closing(peer.load(job)) as loaded:
        seconds = time.perf_counter() - started
        say(ready={"name": peer.name, "version": peer.version, "load_seconds": seconds})
        if job.check_out is not None:
            say(checked=dict(loaded.write(Path(job.check_out))))
            return
        begun, left, number = time.perf_counter(), job.iterations, 0
        while left:
            started = time.perf_counter()
            warmup = number < job.warmup or started - begun < job.warmup_seconds
            delivered = dict(loaded.run())
            seconds = time.perf_counter() - started
            filtered = loaded.messages - sum(delivered.values()) if job.workload in FILTERS else 0
            say(iteration=number, warmup=warmup, messages=loaded.messages, seconds=seconds, delivered=delivered,
                filtered=filtered)  # fmt: skip
            number, left = number + 1, left if warmup else left - 1


def count_lines(files: Iterable[str]) -> int:
    """The number of messages in the files; it also brings them into the page cache."""
    total = 0
    for name in files:
        with open(name, "rb") as file:
            while block := file.read(1 << 22):
                total += block.count(b"\n")
    return total


def longest_line(files: Iterable[str]) -> int:
    """The bytes of the longest message, for engines that must know."""
    longest = 0
    for name in files:
        with open(name, "rb") as file:
            longest = max(longest, max(map(len, file), default=0))
    return longest


def write_channels(directory: Path, messages: Iterable[tuple[str, str]]) -> Mapping[str, int]:
    """Write (channel, body) pairs as `<channel>.jsonl`, in the order in which they come."""
    directory.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    files: dict[str, TextIO] = {}
    try:
        for channel, body in messages:
            if channel not in files:
                files[channel] = open(directory / f"{channel}.jsonl", "w", encoding="utf-8")  # noqa: SIM115
            files[channel].write(body + "\n")
            counts[channel] += 1
    finally:
        for file in files.values():
            file.close()
    return counts

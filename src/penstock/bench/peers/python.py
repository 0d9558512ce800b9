"""Plain Python with msgspec: what a good program without any framework does, in one process per thread.

The workers are forked when the lines are in memory; they take slices of the lines and answer with counts.
"""

from __future__ import annotations

import gc
import multiprocessing
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
from msgspec.json import Decoder

from penstock.bench.peers.fields import SYNONYMS
from penstock.bench.peers.protocol import Job, Missing, main
from penstock.bench.peers.python_memory import Forgetting, Remembering, combined_step_of, remembering_step_of
from penstock.bench.peers.python_messages import CustomerRow
from penstock.bench.peers.python_steps import Delivery, step_of

RUN = 8192
"""Lines that are worked on, delivered and forgotten together, so that what they make stays in the caches."""
SLICES_PER_THREAD = 16
SMALLEST_SLICE = 256 * 1024
"""Bytes for which it is worth to ask a worker; but every worker gets its part of the lines."""


@dataclass(frozen=True)
class Program:
    """What makes a step for each slice, and the number of slices that each thread should get."""

    make: Callable[[], Remembering]
    slices: int


class PlainPython:
    name = "python"
    version = f"{platform.python_version()}, msgspec {msgspec.__version__}"

    def load(self, job: Job) -> LoadedLines:
        return LoadedLines(program_of(job), lines_of(job.inputs), job.threads)


def program_of(job: Job) -> Program:
    name = SYNONYMS.get(job.workload, job.workload)
    make = remembering_step_of(name, job)
    if make is not None:
        return Program(make, 1)
    step = step_of(name, job, lambda: _customers(job)) or combined_step_of(name)
    if step is None:
        raise Missing(f"there is no program in plain Python for {job.workload!r}")
    return Program(lambda: Forgetting(step), SLICES_PER_THREAD)


def lines_of(files: Sequence[str]) -> list[bytes]:
    return [line for name in files for line in Path(name).read_bytes().splitlines()]


def _customers(job: Job) -> dict[int, CustomerRow]:
    rows = map(Decoder(CustomerRow).decode, lines_of(job.tables["customers"]))
    return {row.CCUSTKEY: row for row in rows}


class LoadedLines:
    """The lines in memory, and the workers that share them."""

    def __init__(self, program: Program, lines: list[bytes], threads: int) -> None:
        self.messages = len(lines)
        self._program, self._lines, self._pool = program, lines, None
        size = _slice_size(lines, threads, program.slices)
        self._slices = [slice(start, start + size) for start in range(0, len(lines), size)]
        _Worker.program, _Worker.lines = program, lines
        if threads > 1:
            self._pool = _started(threads)

    def run(self) -> Mapping[str, int]:
        return self._send(None)

    def write(self, directory: Path) -> Mapping[str, int]:
        return self._send(directory)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()

    def _send(self, directory: Path | None) -> Mapping[str, int]:
        tasks = [(number, part, directory) for number, part in enumerate(self._slices)]
        answers = self._pool.map(_work, tasks, chunksize=1) if self._pool else list(map(_work, tasks))
        rest = self._program.make().finish([held for _, held in answers], self._lines)
        return sum((counts for counts, _ in answers), deliver(rest, len(tasks), directory))


def _slice_size(lines: Sequence[bytes], threads: int, slices: int) -> int:
    worth_it = len(lines) * SMALLEST_SLICE // max(1, sum(map(len, lines)))
    wanted = -(-len(lines) // (threads * slices))
    return max(1, wanted, min(worth_it, -(-len(lines) // threads)))


def deliver(delivery: Delivery, number: int, directory: Path | None) -> Counter[str]:
    """Count the bodies of each channel; write them, too, if there is a directory."""
    if directory is not None:
        for channel, bodies in delivery.items():
            (directory / channel).mkdir(parents=True, exist_ok=True)
            with open(directory / channel / f"{number:06}.jsonl", "ab") as file:
                file.writelines(body + b"\n" for body in bodies)
    return Counter({channel: len(bodies) for channel, bodies in delivery.items()})


class _Worker:
    """What a forked worker finds in its memory."""

    program: Program
    lines: Sequence[bytes]
    together: Barrier


def _work(task: tuple[int, slice, Path | None]) -> tuple[Counter[str], Any]:
    number, part, directory = task
    lines = _Worker.lines[part]
    step = _Worker.program.make()
    counts: Counter[str] = Counter()
    for start in range(0, len(lines), RUN):
        counts += deliver(step.take(lines[start : start + RUN]), number, directory)
    return counts, step.held()


def _started(threads: int) -> Pool:
    fork = multiprocessing.get_context("fork")
    _Worker.together = fork.Barrier(threads)
    gc.freeze()  # else the first collection of each worker copies all pages of the lines
    pool = fork.Pool(threads)
    pool.map(_own_pages, range(threads), chunksize=1)
    return pool


def _own_pages(_: int) -> None:
    """Count a reference to every line, which copies its page: later that would be part of the first iteration."""
    for _line in _Worker.lines:
        pass
    _Worker.together.wait()


if __name__ == "__main__":
    main(PlainPython())

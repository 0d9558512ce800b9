"""A conversation with the process of a peer.

The process is given a file with one job, or with a list of jobs to do one after the other, and prints lines of JSON:

    {"ready": {"name", "version", "load_seconds"}}
    {"iteration": 0, "warmup": true, "messages": n, "seconds": s, "delivered": {channel: count}, "filtered": n}
    {"checked": {channel: count}}        in place of iterations, where the job has a `check_out`
    {"missing": reason}                  it does not have this workload
    {"error": reason}

In a list every line also has "workload"; jobs are answered in their order, and one that is missing or fails does not
keep the process from the next. Other lines are ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.bench.peers.base import Peer, on_cores

_GRACE = 10.0
_REASON = 300


@dataclass(frozen=True, slots=True)
class Job:
    """What a process is asked for.

    Iterations are for warming up until there were `warmup` of them and `warmup_seconds` have passed; then `iterations`
    count. `users` is the number of producers of messages, None for as many as `threads`; `batch` is the number of
    messages that are handed over together, None if it may choose.
    """

    workload: str
    inputs: tuple[str, ...]
    tables: dict[str, tuple[str, ...]]
    warmup: int
    iterations: int
    threads: int
    users: int | None = None
    batch: int | None = None
    check_out: str | None = None
    warmup_seconds: float = 0.0


@dataclass(slots=True)
class Result:
    """What a process answered to a job: iterations or counts of a check, or why there are none."""

    version: str = ""
    iterations: list[dict[str, Any]] = field(default_factory=list)
    checked: dict[str, int] | None = None
    missing: str | None = None
    error: str | None = None
    left_out: bool = False
    fork_seconds: float = 0.0
    load_seconds: float = 0.0
    work_seconds: float = 0.0
    verify_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`each` is for one job, with the start of the process; `deadline` (of `time.monotonic`) is for all of them."""

    each: float
    deadline: float | None = None

    def until(self, begun: float) -> float:
        """When a job that began then has to be done."""
        return begun + self.each if self.deadline is None else min(begun + self.each, self.deadline)

    def passed(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


_HURRIED = {"PENSTOCK_QUICK": "1"}
"""Where time is short, Spark had better start soon than compute fast."""


def converse(peer: Peer, jobs: Sequence[Job], cores: int, limits: Limits, log: Path) -> Generator[Result]:
    """The result of every job, in order. A process that dies is started again for what is left."""
    answered = 0
    while answered < len(jobs):
        for result in _ask(peer, jobs[answered:], cores, limits, log):
            answered += 1
            yield result


def _ask(peer: Peer, jobs: Sequence[Job], cores: int, limits: Limits, log: Path) -> Iterator[Result]:
    if limits.passed():
        yield from (_left_out() for _ in jobs)
        return
    arguments = log.with_suffix(".json")
    described = [asdict(job) for job in jobs]
    arguments.write_text(json.dumps(described if len(jobs) > 1 else described[0]), encoding="utf-8")
    hurried = {} if limits.deadline is None else _HURRIED
    with _Process(peer, arguments, {**peer.environment(cores), **hurried}, cores, log) as process:
        for number, job in enumerate(jobs):
            result = _listen(process, job, limits)
            if number == len(jobs) - 1:
                result.verify_seconds = process.end()
            yield result
            if process.is_over:
                break
    # What cannot even start is not tried again for every job.
    if not process.has_started and result.error:
        reason = result.error
        yield from (Result(error=reason) for _ in jobs[number + 1 :])


def _listen(process: _Process, job: Job, limits: Limits) -> Result:
    result, begun, ready = Result(), time.monotonic(), 0.0
    while not _is_done(result, job):
        try:
            line = process.line(limits.until(begun) - time.monotonic())
        except queue.Empty:
            process.kill()
            if limits.passed():
                return _left_out()
            result.error = f"not done after {limits.each:.0f} s, the time limit"
            return result
        if line is None:
            result.error = process.last_words()
        elif line.get("workload", job.workload) != job.workload:
            process.kill()
            result.error = f"it answered {line['workload']} where {job.workload} was asked"
        elif "ready" in line:
            ready = time.monotonic()
            result.version = str(line["ready"].get("version", "?"))
            result.load_seconds = float(line["ready"].get("load_seconds", 0.0))
            result.fork_seconds = max(0.0, ready - begun - result.load_seconds)
        else:
            _note(result, line)
    result.work_seconds = time.monotonic() - (ready or begun)
    return result


def _note(result: Result, line: dict[str, Any]) -> None:
    if "iteration" in line:
        result.iterations.append(line)
    elif "checked" in line:
        result.checked = dict(line["checked"])
    elif "missing" in line:
        result.missing = _first_line(line["missing"])
    elif "error" in line:
        result.error = _first_line(line["error"])


def _first_line(reason: object) -> str:
    return next(iter(str(reason).strip().splitlines()), "no reason is given")[:_REASON]


def _is_done(result: Result, job: Job) -> bool:
    if result.missing is not None or result.error is not None or result.checked is not None:
        return True
    timed = sum(not line["warmup"] for line in result.iterations)
    return job.check_out is None and timed >= job.iterations


def _left_out() -> Result:
    return Result(left_out=True, error="left out: the time of a quick run was over")


class _Process:
    """A process in a session of its own, whose output is read by a thread."""

    def __init__(self, peer: Peer, arguments: Path, environment: dict[str, str], cores: int, log: Path) -> None:
        self.log, self.is_over, self.has_started = log, False, False
        self.queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with open(log, "ab") as errors, on_cores(cores):
            self.process = subprocess.Popen(
                peer.command(arguments.absolute()),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
                env={**os.environ, **environment},
            )  # fmt: skip
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.reader.join(1.0)  # something that it started may still hold its output

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                try:
                    found = json.loads(line)
                except ValueError:
                    continue
                if isinstance(found, dict):
                    self.queue.put(found)
        self.queue.put(None)

    def line(self, timeout: float) -> dict[str, Any] | None:
        """The next line, None at the end; raises queue.Empty when the time is over."""
        found = self.queue.get(timeout=max(0.0, timeout))
        self.is_over = self.is_over or found is None
        self.has_started = self.has_started or (found is not None and ("workload" in found or "error" not in found))
        return found

    def end(self) -> float:
        """Let it end by itself for a while; the seconds that took."""
        begun = time.monotonic()
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
        return time.monotonic() - begun

    def kill(self) -> None:
        """It and all that it started; a process that is over already is only forgotten."""
        self.is_over = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def last_words(self) -> str:
        code = self.process.wait()
        said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"{how}{': ' + said[-1].strip()[:_REASON] if said else ''} (see {self.log})"

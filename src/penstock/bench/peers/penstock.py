"""Penstock itself: the routes of `workloads`, run in batch from the files, on one Spark for all jobs.

`users` run side by side, each with a part of the messages. `batch` is how many messages are handed over at once: one
run after the other, each over so many.
"""

from __future__ import annotations

import fileinput
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

from pyspark.sql import SparkSession

from penstock import App, __version__
from penstock.bench.peers.protocol import Job, Loaded, Missing, count_lines, main
from penstock.bench.workload import WORKLOADS
from penstock.bench.workloads import APPS
from penstock.bench.workloads.ends import Ends
from penstock.formats.compiled.compilation import compile_once
from penstock.formats.compiled.machinecode import code_file, is_possible
from penstock.spark.run import run_batch
from penstock.spark.session import session


@dataclass
class Runs:
    """A workload on its messages: an app for each part of them."""

    spark: SparkSession
    job: Job
    apps: list[App]
    messages: int
    scratch: Path | None

    def run(self) -> Mapping[str, int]:
        if self.job.users in (None, 1):
            return _added(map(self._run, self.apps))
        with ThreadPoolExecutor(self.job.users) as users:
            return _added(users.map(self._run, self.apps))

    def _run(self, app: App) -> Mapping[str, int]:
        summary = run_batch(app, self.spark).summary
        assert summary.conserved, str(summary)
        assert not summary.dead, str(summary)
        return summary.delivered

    def write(self, directory: Path) -> Mapping[str, int]:
        return self._run(APPS[self.job.workload](_ends(self.job, _pattern(self.job.inputs), directory)))

    def close(self) -> None:
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


@dataclass
class Penstock:
    name: str = "penstock"
    version: str = __version__
    sessions: list[SparkSession] = field(default_factory=list)

    def load(self, job: Job) -> Loaded:
        if job.workload not in APPS:
            raise Missing("there is no route for it yet")
        if is_possible():
            compile_once(code_file())
        if not self.sessions:
            self.sessions.append(session("eipbench"))
        messages, scratch = count_lines(job.inputs), None
        patterns = [_pattern(job.inputs)]
        if (job.users or 1) > 1 or job.batch is not None:
            scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
            size = job.batch or -(-messages // job.users)
            patterns = list(_cut(job.inputs, size, scratch))
        apps = [APPS[job.workload](_ends(job, pattern)) for pattern in patterns]
        return Runs(self.sessions[0], job, apps, messages, scratch)


def _ends(job: Job, pattern: str, out: Path | None = None) -> Ends:
    tables = {name: list(files) for name, files in job.tables.items()}
    return Ends(WORKLOADS[job.workload].model, pattern, tables, out)


def _pattern(inputs: Iterable[str]) -> str:
    """What finds these files, which are all of their directory."""
    (directory,) = {Path(name).parent for name in inputs}
    assert {str(file) for file in directory.glob("*.jsonl")} == set(inputs)
    return f"{directory}/*.jsonl"


def _cut(inputs: Iterable[str], size: int, scratch: Path) -> Iterator[str]:
    """The messages again, in files of so many each."""
    with fileinput.input(inputs, mode="rb") as lines:
        for number in count():
            file = scratch / f"{number}.jsonl"
            if not file.write_bytes(b"".join(islice(lines, size))):
                return
            yield str(file)


def _added(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


if __name__ == "__main__":
    main(Penstock())

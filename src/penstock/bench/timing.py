"""Time forks, and store the samples of each as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from penstock.bench.inputs import Inputs, Messages, reason_of
from penstock.bench.peers.base import Peer
from penstock.bench.process import Job, Limits, Result, converse
from penstock.bench.rundirectory import Run
from penstock.bench.samples import Sample
from penstock.bench.schedule import Cell, amount, schedule
from penstock.bench.verification import Verification
from penstock.bench.watch import Unit, Watch
from penstock.bench.workload import WORKLOADS
from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class Fork:
    """One timing of one cell on one peer."""

    peer: Peer
    cell: Cell
    number: int


class Timing:
    """The forks of a run; where one fails, the others of its cell and peer are left out."""

    def __init__(self, run: Run, messages: Messages, verification: Verification, watch: Watch) -> None:
        self.run, self.messages, self.verification, self.watch = run, messages, verification, watch
        self.failed: set[tuple[str, Cell]] = set()

    def forks(self, peers: Sequence[Peer]) -> list[Fork]:
        """All that is not stored yet: peers inside cells inside forks; every second fork takes the peers backwards."""
        stored = {(sample.peer, sample.cell, sample.fork) for sample in self.run.samples()}
        return [
            Fork(peer, cell, number)
            for number in range(self.run.settings.forks)
            for cell in schedule(self.run.settings)
            for peer in (peers if number % 2 == 0 else peers[::-1])
            if cell.factors <= peer.factors
            and (peer.name, cell, number) not in stored
            and not self.verification.is_missing(peer, cell.workload)
        ]

    def unit(self, fork: Fork) -> Unit:
        settings = self.run.settings
        number = f", fork {fork.number + 1} of {settings.forks}" if settings.forks > 1 else ""
        cell = fork.cell.described(with_cores=len(settings.cores) > 1)
        return Unit(fork.peer.name, f"{cell} on {fork.peer.name}{number}")

    def time(self, forks: Sequence[Fork], limits: Limits) -> None:
        """Forks of one peer on the same cores, in one process."""
        made = [self._job(fork) if self._is_wanted(fork) else None for fork in forks]
        asked = [pair[0] for pair in made if isinstance(pair, tuple)]
        first = forks[0]
        log = self.run.log(f"{first.peer.name}-{first.cell.workload}-{first.number}")
        with closing(converse(first.peer, asked, first.cell.cores, limits, log)) as results:
            for fork, pair in zip(forks, made, strict=True):
                if pair is None:
                    self.watch.skip()
                    continue
                self.watch.start()
                if isinstance(pair, str):
                    self._fail(fork, pair)
                else:
                    self._store(fork, pair[1], next(results))

    def _is_wanted(self, fork: Fork) -> bool:
        right = self.verification.is_right(fork.peer, fork.cell.workload)
        return right and (fork.peer.name, fork.cell) not in self.failed

    def _job(self, fork: Fork) -> tuple[Job, Inputs] | str:
        cell, settings = fork.cell, self.run.settings
        wanted = amount(cell, settings, fork.peer.one_by_one)
        try:
            inputs = self.messages.files(wanted)
            tables = self.messages.tables(WORKLOADS[cell.workload].tables, wanted)
        except (PenstockError, LookupError, ValueError) as error:
            return f"there are no messages {wanted.model}: {reason_of(error)}"
        job = Job(
            cell.workload, inputs.names, tables, settings.warmup, settings.iterations, cell.cores, cell.users,
            cell.batch, warmup_seconds=settings.warmup_seconds,
        )  # fmt: skip
        return job, inputs

    def _store(self, fork: Fork, inputs: Inputs, result: Result) -> None:
        begun = time.monotonic()
        problem = result.error or result.missing or verify(fork.cell.workload, result, inputs)
        if problem:
            self._fail(fork, problem)
            return
        result.verify_seconds += time.monotonic() - begun
        samples = [_sample(self.run, fork, inputs, result, line) for line in result.iterations]
        self.run.add_samples(samples)
        timed = [sample.rate for sample in samples if not sample.warmup]
        rate = sum(timed) / len(timed)
        self.watch.done(f"{rate:,.{0 if rate >= 10 else 2}f} messages/s")

    def _fail(self, fork: Fork, reason: str) -> None:
        self.failed.add((fork.peer.name, fork.cell))
        self.run.add_failure(fork.peer.name, fork.cell, fork.number, reason)
        self.watch.done(f"failed: {reason}")


def verify(workload: str, result: Result, inputs: Inputs) -> str | None:
    """What is wrong with the counts of a fork: every iteration has to read all messages and do the same with them."""
    for line in result.iterations:
        if line["messages"] != inputs.messages:
            return f"it read {line['messages']:,} messages where there are {inputs.messages:,}"
    counts = {(_counts(workload, line["delivered"]), line.get("filtered", 0)) for line in result.iterations}
    return "its iterations deliver different counts" if len(counts) > 1 else None


def _counts(workload: str, delivered: Mapping[str, int]) -> tuple[object, ...]:
    """Who takes turns begins an iteration where the one before ended: then the channels change places."""
    return tuple(sorted(delivered.values() if workload.startswith("LB-") else delivered.items()))


def _sample(run: Run, fork: Fork, inputs: Inputs, result: Result, line: dict[str, Any]) -> Sample:
    cell = fork.cell
    return Sample(
        run=run.name, peer=fork.peer.name, peer_version=result.version, workload=cell.workload, users=cell.users,
        batch=cell.batch, size=cell.size, cores=cell.cores, messages=inputs.messages, bytes=inputs.bytes,
        fork=fork.number, iteration=line["iteration"], warmup=line["warmup"], seconds=line["seconds"],
        delivered=sum(line["delivered"].values()), filtered=line.get("filtered", 0),
        fork_seconds=result.fork_seconds, load_seconds=result.load_seconds, work_seconds=result.work_seconds,
        verify_seconds=result.verify_seconds, machine=run.facts["machine"], versions=run.facts["versions"],
        commit=run.facts["commit"], time=time.time(), spelling=cell.spelling,
    )  # fmt: skip

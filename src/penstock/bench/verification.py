"""Check the answers of a peer on a few messages, before anything is timed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from penstock.bench.inputs import Messages, reason_of
from penstock.bench.peers.base import Peer
from penstock.bench.process import Job, Limits, Result, converse
from penstock.bench.rundirectory import FAILED, MISSING, RIGHT, WRONG, Run, Verdict
from penstock.bench.schedule import checked_amount
from penstock.bench.watch import Unit, Watch
from penstock.bench.workload import WORKLOADS
from penstock.errors import PenstockError


class Verification:
    """What is known about answers: what a run has stored, and what is found out now.

    Right answers and workloads that a peer does not have are remembered; what was wrong or failed is checked again.
    """

    def __init__(self, run: Run, messages: Messages, watch: Watch) -> None:
        self.run, self.messages, self.watch = run, messages, watch
        stored = run.verdicts()
        self.verdicts = {key: verdict for key, verdict in stored.items() if verdict.status in (RIGHT, MISSING)}

    def is_right(self, peer: Peer, workload: str) -> bool:
        verdict = self.verdicts.get((peer.name, workload))
        return verdict is not None and verdict.status == RIGHT

    def is_missing(self, peer: Peer, workload: str) -> bool:
        verdict = self.verdicts.get((peer.name, workload))
        return verdict is not None and verdict.status == MISSING

    def open(self, peer: Peer) -> list[str]:
        """The workloads of the run that are not checked on this peer."""
        return [name for name in self.run.settings.workloads if (peer.name, name) not in self.verdicts]

    def units(self, peer: Peer) -> list[Unit]:
        return [Unit(peer.name, f"check {name} on {peer.name}") for name in self.open(peer)]

    def check(self, peer: Peer, limits: Limits) -> None:
        """All that is open on this peer, in one process."""
        jobs = {name: self._job(peer, name) for name in self.open(peer)}
        asked = [job for job in jobs.values() if isinstance(job, Job)]
        cores = self.run.settings.cores[-1]
        log = self.run.log(f"{peer.name}-check")
        with closing(converse(peer, asked, cores, limits, log)) as results:
            for job in jobs.values():
                self.watch.start()
                self._note(self._verdict(peer, job, next(results)) if isinstance(job, Job) else job)

    def _note(self, verdict: Verdict) -> None:
        self.run.add_verdict(verdict)
        self.verdicts[verdict.peer, verdict.workload] = verdict
        self.watch.done("" if verdict.status == RIGHT else f"{verdict.status}: {verdict.reason}")

    def _job(self, peer: Peer, name: str) -> Job | Verdict:
        wanted = checked_amount(WORKLOADS[name], self.run.settings)
        try:
            inputs = self.messages.files(wanted)
            tables = self.messages.tables(WORKLOADS[name].tables, wanted)
        except (PenstockError, LookupError, ValueError) as error:
            return Verdict(peer.name, name, FAILED, f"there are no messages {wanted.model}: {reason_of(error)}")
        out = (self.run.path / "check" / peer.name / name).absolute()
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        return Job(name, inputs.names, tables, 0, 1, self.run.settings.cores[-1], check_out=str(out))

    def _verdict(self, peer: Peer, job: Job, result: Result) -> Verdict:
        if result.missing is not None:
            return Verdict(peer.name, job.workload, MISSING, result.missing)
        if result.error is not None:
            return Verdict(peer.name, job.workload, FAILED, result.error)
        differences = self._differences(job)
        if differences:
            return Verdict(peer.name, job.workload, WRONG, f"{differences[0]} (its answers: {job.check_out})")
        shutil.rmtree(str(job.check_out))
        return Verdict(peer.name, job.workload, RIGHT)

    def _differences(self, job: Job) -> Sequence[str]:
        try:
            return self.messages.differences(job.workload, job.inputs, Path(str(job.check_out)), job.tables)
        except (PenstockError, LookupError, ValueError, OSError) as error:
            return [f"cannot be checked: {reason_of(error)}"]

"""Run the benchmark: check every answer, then time fork by fork.

Phases as in figure 3 of EIPBench. Before (`pre`): a fresh process, which loads its messages. `work`: warm-up and
iterations. After (`post`): the process ends and its counts are verified. Peers alternate, so that noise of the machine
hits all alike. Everything is stored as soon as it is known, so a run that was stopped can go on.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence

from penstock.bench.inputs import Messages
from penstock.bench.peers.base import Peer
from penstock.bench.process import Limits
from penstock.bench.rundirectory import FAILED, Run, Verdict
from penstock.bench.schedule import Amount, Settings, amount, checked_amount, schedule, table_amount
from penstock.bench.timing import Fork, Timing
from penstock.bench.verification import Verification
from penstock.bench.watch import State, Watch
from penstock.bench.workload import WORKLOADS
from penstock.errors import PenstockError


def measure(run: Run, peers: Mapping[str, Peer], messages: Messages, watch: Watch) -> None:
    """Check and time whatever of the run is not stored yet."""
    ready = [peer for peer in (peers[name] for name in run.settings.peers) if _is_ready(run, peer, watch)]
    end = time.monotonic() + (run.settings.budget or math.inf)
    _make(messages, amounts(run.settings, ready), watch)
    verification = Verification(run, messages, watch)
    timing = Timing(run, messages, verification, watch)
    if run.settings.quick:
        _quickly(ready, verification, timing, watch, end)
    else:
        _thoroughly(ready, verification, timing, watch)


def _make(messages: Messages, wanted: Sequence[Amount], watch: Watch) -> None:
    """All messages; what cannot be made is a failure of the forks that need it."""
    for position, one in enumerate(wanted):
        watch.show(State(position, len(wanted), f"messages {one.model}", "", None))
        with contextlib.suppress(PenstockError, LookupError, ValueError):
            messages.files(one)


def _is_ready(run: Run, peer: Peer, watch: Watch) -> bool:
    reason = peer.availability() or peer.prepare(watch.note)
    if reason is not None:
        watch.note(f"{peer.name} is left out: {reason}")
        for workload in run.settings.workloads:
            run.add_verdict(Verdict(peer.name, workload, FAILED, reason))
    return reason is None


def _thoroughly(peers: Sequence[Peer], verification: Verification, timing: Timing, watch: Watch) -> None:
    """A fresh process for every fork of every cell."""
    limits = Limits(timing.run.settings.limit)
    watch.expect(unit for peer in peers for unit in verification.units(peer))
    forks = timing.forks(peers)
    watch.expect(map(timing.unit, forks))
    for peer in peers:
        verification.check(peer, limits)
    for fork in forks:
        timing.time([fork], limits)


def _quickly(peers: Sequence[Peer], verification: Verification, timing: Timing, watch: Watch, end: float) -> None:
    """One process for the checks of a peer and one for each of its forks; each peer has an equal part of the time.

    The first one comes last, and so has what the others left: it is the one that the report is about.
    """
    limit = timing.run.settings.limit
    forks = {peer.name: sorted(timing.forks([peer]), key=_process) for peer in peers}
    turns = list(reversed(peers))
    for peer in turns:
        watch.expect([*verification.units(peer), *map(timing.unit, forks[peer.name])])
    for position, peer in enumerate(turns):
        now = time.monotonic()
        share = (end - now) / (len(turns) - position)
        verification.check(peer, Limits(limit, now + share / 2))
        for _, together in itertools.groupby(forks[peer.name], _process):
            timing.time(list(together), Limits(limit, now + share))


def _process(fork: Fork) -> tuple[int, int]:
    """What forks have to agree in to share a process."""
    return fork.number, fork.cell.cores


def amounts(settings: Settings, peers: Iterable[Peer]) -> list[Amount]:
    """All messages that a run with these settings needs, each once."""
    wanted: dict[Amount, None] = {}
    for name in settings.workloads:
        wanted.update(_with_tables(name, checked_amount(WORKLOADS[name], settings)))
    for one_by_one in sorted({peer.one_by_one for peer in peers}):
        for cell in schedule(settings):
            wanted.update(_with_tables(cell.workload, amount(cell, settings, one_by_one)))
    return list(wanted)


def _with_tables(workload: str, messages: Amount) -> dict[Amount, None]:
    return dict.fromkeys([messages, *(table_amount(name, messages) for name in WORKLOADS[workload].tables)])

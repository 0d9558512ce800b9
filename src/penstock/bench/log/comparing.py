"""Peers in the same run: all servers of a mode run at the same time, and take turns in every round."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from penstock.bench.log.peers import PEERS
from penstock.bench.log.peers.base import MODES, Serving
from penstock.bench.log.publishers import Timed, streaming, waiting
from penstock.bench.log.samples import Absent, Sample, Samples

STREAM, WAITING = "stream", "waiting publishers"
PAYLOADS = (32, 512)
PUBLISHERS = 64
_CHECKED_SECONDS = 0.2


def measure(samples: Samples, directory: Path, names: Sequence[str], modes: Sequence[str], rounds: int, seconds: float,
            say: Callable[[str], None], payloads: Sequence[int] = PAYLOADS) -> None:  # fmt: skip
    """Check what was acknowledged, by reading all of it back, then time."""
    there = []
    for name in names:
        reason = PEERS[name].missing()
        if reason is None:
            there.append(name)
        else:
            samples.lack(Absent("all", name, "", reason))
    for mode in MODES:
        if mode not in modes:
            continue
        for name in there:
            if mode not in PEERS[name].modes:
                samples.lack(Absent("mode", name, mode, PEERS[name].lacks[mode]))
        measured = [name for name in there if mode in PEERS[name].modes]
        try:
            with ExitStack() as stack:
                serving: dict[str, Serving] = {}
                for name in measured:
                    say(f"{mode}: starting {PEERS[name].title}")
                    serving[name] = stack.enter_context(PEERS[name].serve(directory / f"{name}-{mode}", mode))
                for number in range(-1, rounds):
                    _round(samples, serving, mode, number, rounds, seconds, say, payloads)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _round(samples: Samples, serving: dict[str, Serving], mode: str, number: int, rounds: int, seconds: float,
           say: Callable[[str], None], payloads: Sequence[int]) -> None:  # fmt: skip
    """Round -1 is short and checks; the others are timed, and count what the clients were told."""
    check = number < 0
    long = min(seconds, _CHECKED_SECONDS) if check else seconds
    for payload in payloads:
        for name, server in serving.items():
            now = "checking" if check else f"round {number + 1} of {rounds}"
            say(f"{mode}: {PEERS[name].title}, {payload} B, {now}")
            topic = f"{mode}-{payload}-{number + 1}"
            for publishers in (1, PUBLISHERS):
                timed = asyncio.run(waiting(server, f"{topic}-{publishers}", publishers, payload, long, check))
                if not check:
                    _note(samples, WAITING, name, mode, payload, publishers, number, timed)
            if PEERS[name].streams:
                timed = asyncio.run(streaming(server, f"{topic}-stream", payload, long, check))
                if not check:
                    _note(samples, STREAM, name, mode, payload, 1, number, timed)


def _note(samples: Samples, what: str, name: str, mode: str, payload: int, publishers: int, number: int,
          timed: Timed) -> None:  # fmt: skip
    samples.add(Sample(what, name, mode, payload, publishers, number, timed.messages, timed.seconds, timed.wait(0.5),
                       timed.wait(0.99), PEERS[name].version()))  # fmt: skip

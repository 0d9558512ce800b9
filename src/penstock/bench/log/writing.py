"""The paper's figures 12 and 13: how fast the last level takes tiny messages, with levels before it and without.

Messages come one by one, each a frame of its own. Without levels each is written before the next one comes, as by the
paper's stand-alone program. With levels they are in memory until a batch of them is written. Two things are timed: the
whole way from the first message until all are written, and, as the paper's figures show it, the last level alone: the
seconds that it was busy.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.log.publishers import message
from penstock.bench.log.samples import Sample, Samples
from penstock.errors import BadMachine
from penstock.log import Acknowledge, Frame, Kind, LevelSettings, Log, Settings

WRITE, LAST_LEVEL = "write, whole way", "write, last level"
BATCH_1, BATCH_2 = "batch of level 1", "batch of level 2"
LEVELS, ALONE = "levels", "alone"
PAYLOADS = (4, 8, 16, 32, 64, 128, 256, 512)
FIRST_BATCHES = (64, 128, 256, 512, 1024, 1472)
SECOND_BATCHES = tuple(size << 10 for size in (4, 8, 16, 32, 64, 128))
BATCH_PAYLOADS = (4, 32, 512)
_BATCH_1, _BATCH_2 = 1472, 32 << 10
_TOPIC = "figure"


def levels(first: int = _BATCH_1, second: int = _BATCH_2) -> Settings:
    return Settings(levels=(
        LevelSettings(Kind.MEMORY, 1 << 20, batch=first), LevelSettings(Kind.SHARED, 4 << 20, batch=second),
    ))  # fmt: skip


class Stopwatch:
    """The seconds that the last level of a log was busy."""

    def __init__(self, log: Log) -> None:
        self.seconds = 0.0
        store: Any = log._partition(_TOPIC, 0).store
        self._write = store.write
        store.write = self._timed

    def _timed(self, frames: Sequence[Frame]) -> None:
        started = time.perf_counter()
        self._write(frames)
        self.seconds += time.perf_counter() - started


def write(directory: Path, settings: Settings, mode: Acknowledge, values: Sequence[bytes]) -> tuple[float, float]:
    """Push one by one until all are stored as `mode` says; the seconds of the whole way and of the last level."""
    shutil.rmtree(directory, ignore_errors=True)
    try:
        with Log(directory, settings) as log:
            log.create(_TOPIC, 1)
            log.append(_TOPIC, 0, Frame.pack([b"first"]), mode).result()
            busy, waits = Stopwatch(log), not settings.levels
            started = time.perf_counter()
            for value in values[:-1]:
                pushed = log.append(_TOPIC, 0, Frame.pack([value]), mode if waits else Acknowledge.MEMORY)
                if waits:
                    pushed.result()
            log.append(_TOPIC, 0, Frame.pack(values[-1:]), mode).result()
            seconds = time.perf_counter() - started
            _check(log, values)
            return seconds, busy.seconds
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _check(log: Log, values: Sequence[bytes]) -> None:
    found: list[bytes] = []
    while len(found) < len(values):
        reading = log.read(_TOPIC, 0, 1 + len(found))
        if not reading.frames:
            break
        for frame in reading.frames:
            found.extend(frame.values.to_pylist())
    if found != list(values):
        raise BadMachine("the log does not hold what was pushed", None, "report this: its speed means nothing then")


def measure(samples: Samples, directory: Path, rounds: int, messages: int, say: Callable[[str], None]) -> None:
    """Figure 12, in alternating rounds, then figure 13."""
    for number in range(-1, rounds):  # the first one warms up
        for payload in PAYLOADS if number >= 0 else PAYLOADS[:1]:
            say(f"figure 12: {payload} B, round {max(number, 0) + 1} of {rounds}")
            for mode in (Acknowledge.WRITTEN, Acknowledge.FSYNCED):
                for side, settings in ((LEVELS, levels()), (ALONE, Settings(levels=()))):
                    # One fsync for each message takes long, and one is like the other.
                    count = messages // 10 if mode is Acknowledge.FSYNCED and side == ALONE else messages
                    values = [message(0, place, payload) for place in range(max(count, 10))]
                    seconds, busy = write(directory, settings, mode, values)
                    if number >= 0:
                        for what, took in ((WRITE, seconds), (LAST_LEVEL, busy)):
                            samples.add(Sample(what, side, str(mode), payload, 0, number, len(values), took))
    for number in range(rounds):
        for what, sizes in ((BATCH_1, FIRST_BATCHES), (BATCH_2, SECOND_BATCHES)):
            say(f"figure 13: {what}, round {number + 1} of {rounds}")
            for size in sizes:
                settings = levels(first=size) if what == BATCH_1 else levels(second=size)
                for payload in BATCH_PAYLOADS:
                    values = [message(0, place, payload) for place in range(messages)]
                    seconds, busy = write(directory, settings, Acknowledge.WRITTEN, values)
                    samples.add(Sample(what, LEVELS, WRITE, payload, size, number, messages, seconds))
                    samples.add(Sample(what, LEVELS, LAST_LEVEL, payload, size, number, messages, busy))

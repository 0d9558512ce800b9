"""The paper's figures 12 and 13: how fast the last level takes tiny messages, with levels before it and without.

Messages come one by one, each a frame of its own. Without levels each is written before the next one comes, as by the
paper's stand-alone program. With levels they are in memory until a batch of them is written. Two things are timed: the
whole way from the first message until all are written, and, as the paper's figures show it, the last level alone: what
it was given on that way is given to another one, as fast as that takes it.
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


class Recorder:
    """What the last level of a log is given."""

    def __init__(self, log: Log) -> None:
        self.writes: list[list[Frame]] = []
        store: Any = log._partition(_TOPIC, 0).store
        self._write = store.write
        store.write = self._record

    def _record(self, frames: Sequence[Frame]) -> None:
        self.writes.append([Frame(memoryview(bytes(frame.data)), frame.header) for frame in frames])
        self._write(frames)

    def played(self, directory: Path) -> float:
        """The seconds that a last level takes for the same."""
        shutil.rmtree(directory, ignore_errors=True)
        with Log(directory, Settings(levels=())) as log:
            log.create(_TOPIC, 1)
            store: Any = log._partition(_TOPIC, 0).store
            store.begin()  # its file, which the first write would make: that is no part of the figure
            started = time.perf_counter()
            for frames in self.writes:
                store.write(frames)
            seconds = time.perf_counter() - started
            if store.end != self.writes[-1][-1].next:
                raise BadMachine("the last level does not hold what it was given", None, "report this")
        shutil.rmtree(directory, ignore_errors=True)
        return seconds


def write(directory: Path, settings: Settings, mode: Acknowledge, values: Sequence[bytes]) -> tuple[float, float]:
    """Push one by one until all are stored as `mode` says; the seconds of the whole way and of the last level."""
    shutil.rmtree(directory, ignore_errors=True)
    try:
        with Log(directory, settings) as log:
            log.create(_TOPIC, 1)
            recorder, waits = Recorder(log), not settings.levels
            started = time.perf_counter()
            for value in values[:-1]:
                pushed = log.append(_TOPIC, 0, Frame.pack([value]), mode if waits else Acknowledge.MEMORY)
                if waits:
                    pushed.result()
            log.append(_TOPIC, 0, Frame.pack(values[-1:]), mode).result()
            seconds = time.perf_counter() - started
            _check(log, values)
        return seconds, recorder.played(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _check(log: Log, values: Sequence[bytes]) -> None:
    found: list[bytes] = []
    while len(found) < len(values):
        reading = log.read(_TOPIC, 0, len(found))
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
                    # Waiting for each message takes long, and one is like the other.
                    part = 1 if side == LEVELS else 20 if mode is Acknowledge.FSYNCED else 5
                    count = messages // part
                    values = [message(0, place, payload) for place in range(max(count, 10))]
                    seconds, played = write(directory, settings, mode, values)
                    if number >= 0:
                        samples.add(Sample(WRITE, side, str(mode), payload, 0, number, len(values), seconds))
                        if mode is Acknowledge.WRITTEN:
                            samples.add(Sample(LAST_LEVEL, side, str(mode), payload, 0, number, len(values), played))
    for number in range(rounds):
        for what, sizes in ((BATCH_1, FIRST_BATCHES), (BATCH_2, SECOND_BATCHES)):
            say(f"figure 13: {what}, round {number + 1} of {rounds}")
            for size in sizes:
                settings = levels(first=size) if what == BATCH_1 else levels(second=size)
                for payload in BATCH_PAYLOADS:
                    values = [message(0, place, payload) for place in range(messages)]
                    seconds, played = write(directory, settings, Acknowledge.WRITTEN, values)
                    samples.add(Sample(what, LEVELS, WRITE, payload, size, number, messages, seconds))
                    samples.add(Sample(what, LEVELS, LAST_LEVEL, payload, size, number, messages, played))

"""A retry after every fault at every step of the disk: what a numbered publisher pushes again is there once."""

from __future__ import annotations

import errno
import random
from concurrent.futures import Future
from pathlib import Path

import pytest

from penstock.log.errors import LogError, NotAcknowledged
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.partition import Partition
from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge, Kind, LevelSettings, Settings
from tests.log.simulated import PowerLoss, SimulatedDisk
from tests.log.store.test_faults import SMALL, opened, read, round_of

M, W, F = Acknowledge
NO_LEVELS = Settings(levels=(), segment_bytes=4096, index_every=512)
BATCHES = 16


class FailingDisk(SimulatedDisk):
    """Fails one step, or all from there on: until it is mended, if it is not the power or the process that fails."""

    fails_from = fails_upto = -1
    number = errno.ENOSPC

    def step(self, what: str, path: Path) -> None:
        super().step(what, path)
        if self.fails_from <= self.steps - 1 < self.fails_upto:
            raise OSError(self.number, f"{what} fails", str(path))

    def mend(self) -> None:
        self.fails_from = self.fails_upto = -1


class Publisher:
    """Pushes everything in order; after a fault, all of it again with the same numbers, until all is acknowledged."""

    def __init__(self, mode: Acknowledge) -> None:
        self.mode = mode
        self.frames, self.values = [], []
        for number in range(BATCHES):
            values = [b"%d-%d" % (number, place) * 20 for place in range(1 + number % 3)]
            self.frames.append(Frame.pack(values, producer=7, sequence=len(self.values)))
            self.values += values
        self.offsets: dict[int, int] = {}

    def push_all(self, partition: Partition) -> bool:
        """Whether all is acknowledged."""
        waiting: list[tuple[int, Future[Receipt]]] = []
        is_whole = True
        for place, frame in enumerate(self.frames):
            try:
                waiting.append((place, partition.append(frame, self.mode)))
                if place % 5 == 4:
                    partition.append(Frame.pack([b"of nobody"]), W)  # so that there is more than one stretch
                if place % 3 == 2:
                    round_of(partition)
            except LogError:
                is_whole = False
                partition._healed = 0.0
        round_of(partition)
        for place, future in waiting:
            if future.done() and future.exception() is None:
                first = future.result().first
                assert self.offsets.setdefault(place, first) == first, f"batch {place} is at two places"
            else:
                is_whole = False
        return is_whole

    def check(self, partition: Partition) -> None:
        found = dict(read(partition))
        mine = [value for value in found.values() if value != b"of nobody"]
        assert mine == self.values
        for place, first in self.offsets.items():
            values = self.frames[place].values.to_pylist()
            assert [found[first + number] for number in range(len(values))] == values


def retry(publisher: Publisher, partition: Partition) -> None:
    for _ in range(3):
        if publisher.push_all(partition):
            return
    raise AssertionError("what is pushed again is never acknowledged")


def steps(settings: Settings, mode: Acknowledge = F) -> range:
    """Those of the disk while all is pushed."""
    disk = FailingDisk()
    publisher, partition = Publisher(mode), opened(disk, settings)
    first = disk.steps
    assert publisher.push_all(partition)
    return range(first, disk.steps)


@pytest.mark.parametrize("settings", [SMALL, NO_LEVELS], ids=["levels", "no levels"])
@pytest.mark.parametrize("fault", ["once full", "full", "once failed", "failed"])
def test_a_retry_after_an_error_of_every_step(settings: Settings, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.log.partition.committing._HEAL_EVERY", 0.0)
    for step in steps(settings):
        disk = FailingDisk()
        publisher, partition = Publisher(F), opened(disk, settings)
        disk.number = errno.ENOSPC if "full" in fault else errno.EIO
        disk.fails_from, disk.fails_upto = step, step + 1 if "once" in fault else 1 << 30
        publisher.push_all(partition)
        disk.mend()
        try:
            retry(publisher, partition)
            publisher.check(partition)
            publisher.check(opened(disk.after_power_loss(), settings))
            again = opened(disk.after_kill(), settings)
            retry(publisher, again)
            publisher.check(again)
        except (AssertionError, LogError) as error:
            raise AssertionError(f"step {step}, {disk.log[step]}: {error}") from error


@pytest.mark.parametrize("settings", [SMALL, NO_LEVELS], ids=["levels", "no levels"])
@pytest.mark.parametrize("fault", ["kill", "power loss", "torn"])
def test_a_retry_after_an_end_at_every_step(settings: Settings, fault: str) -> None:
    mode = W if fault == "kill" else F
    for step in steps(settings, mode):
        disk = FailingDisk()
        publisher, partition = Publisher(mode), opened(disk, settings)
        disk.crash_at = step
        with pytest.raises(PowerLoss):
            publisher.push_all(partition)
        chance = random.Random(step) if fault == "torn" else None
        after = disk.after_kill() if fault == "kill" else disk.after_power_loss(chance)
        try:
            again = opened(after, settings)
            retry(publisher, again)
            publisher.check(again)
            again.close()
            publisher.check(opened(after.after_power_loss(), settings))
        except (AssertionError, LogError) as error:
            raise AssertionError(f"step {step}, {disk.log[-1]}: {error}") from error


def test_a_level_that_cannot_be_made_leaves_nothing_known_of_a_producer(tmp_path: Path) -> None:
    settings = Settings(levels=(LevelSettings(Kind.MAPPED, 1 << 20),))
    frame = Frame.pack([b"first"], producer=7)
    with Log(tmp_path, settings) as log:
        log.create("t")
        in_the_way = tmp_path / "topics" / "t" / "0" / "level-1.ring"
        in_the_way.mkdir()
        with pytest.raises(NotAcknowledged, match=r"bytes for level 1 \(mapped\)"):
            log.append_singles("t", 0, [frame], F, [Future()])
        assert log.numbered("t", 0, 7) is None
        in_the_way.rmdir()
        again: Future[Receipt] = Future()
        assert log.append_singles("t", 0, [frame], F, [again])
        log.ask("t", 0)
        assert not again.result(60).duplicate
        assert log.read("t", 0, 0).frames[0].values.to_pylist() == [b"first"]

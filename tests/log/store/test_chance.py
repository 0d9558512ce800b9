"""Faults by chance: pushes, rounds, failing fsyncs, full disks, openings, retries, then a power loss or a kill."""

from __future__ import annotations

import os
import random
from concurrent.futures import Future

import pytest

from penstock.log.errors import NotAcknowledged
from penstock.log.frame import Frame
from penstock.log.partition import Partition
from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge, Settings
from tests.log.checker import check
from tests.log.simulated import PowerLoss, SimulatedDisk
from tests.log.store.test_faults import SMALL, opened, read, round_of

RUNS = int(os.environ.get("PENSTOCK_CHANCES", "90"))
NO_LEVELS = Settings(levels=(), segment_bytes=4096, index_every=512)
M, W, F = Acknowledge


class Life:
    """Of a log on a bad disk. A numbered publisher pushes every batch until it is acknowledged, and then the next."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = SimulatedDisk()
        self.settings = self.chance.choice((SMALL, NO_LEVELS))
        self.partition: Partition = opened(self.disk, self.settings)
        self.pushed: list[bytes] = []
        self.answers: list[tuple[Future[Receipt], list[bytes]]] = []
        self.sequence = 0
        self.numbered: list[bytes] = []
        self.trying: tuple[Frame, Future[Receipt] | None] | None = None

    def values(self, count: int) -> list[bytes]:
        made = [f"{len(self.pushed) + n}".encode().ljust(self.chance.choice((5, 50, 300)), b".") for n in range(count)]
        self.pushed += made
        return made

    def step(self) -> None:
        what = self.chance.random()
        if what < 0.45:
            values = self.values(self.chance.randrange(1, 6))
            self.append(Frame.pack(values), self.chance.choice((M, W, F)), values)
        elif what < 0.6:
            self.push_numbered()
        elif what < 0.68:
            self.partition.write_pending()
        elif what < 0.88:
            round_of(self.partition)
        elif what < 0.91:
            self.disk.failing_syncs = self.chance.randrange(0, 4)
        elif what < 0.94:
            self.disk.room = self.chance.choice((0, 100, 1000, 3000))
        elif what < 0.98:
            self.disk.room, self.disk.failing_syncs = None, 0
            self.partition._healed = 0.0
        else:
            self.open_again()

    def append(self, frame: Frame, mode: Acknowledge, values: list[bytes]) -> Future[Receipt] | None:
        try:
            future = self.partition.append(frame, mode)
        except NotAcknowledged:
            return None
        self.answers.append((future, values))
        return future

    def push_numbered(self) -> None:
        if self.trying is not None:
            frame, future = self.trying
            if future is not None and future.done() and future.exception() is None:
                self.sequence += frame.count
                self.numbered += frame.values.to_pylist()
                self.trying = None
        if self.trying is None:
            values = self.values(self.chance.randrange(1, 4))
            self.trying = Frame.pack(values, producer=77, sequence=self.sequence), None
        frame, future = self.trying
        if future is None or self.chance.random() < 0.5:
            self.trying = frame, self.append(frame, F, frame.values.to_pylist())

    def open_again(self) -> None:
        self.disk.room, self.disk.failing_syncs = None, 0
        self.partition._healed = 0.0
        self.partition.close()
        self.partition = opened(self.disk, self.settings)

    def acknowledged(self, least: Acknowledge) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for future, values in self.answers:
            if future.done() and future.exception() is None and future.result().acknowledged >= least:
                assert future.result().first >= 0
                found |= {future.result().first + place: value for place, value in enumerate(values)}
        return found


@pytest.mark.parametrize("part", range(3))
def test_nothing_acknowledged_is_lost_whatever_happens(part: int) -> None:
    for seed in range(part, RUNS, 3):
        life = Life(seed)
        life.disk.crash_at = life.disk.steps + life.chance.randrange(20, 300)
        try:
            for _ in range(400):
                life.step()
                if life.chance.random() < 0.1:
                    check(read(life.partition), life.acknowledged(F), life.pushed)
        except PowerLoss:
            pass
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        after, least = (life.disk.after_kill(), W) if seed % 2 else (life.disk.after_power_loss(life.chance), F)
        found = read(opened(after, life.settings))
        try:
            check(found, life.acknowledged(least), life.pushed)
            mine = [value for _, value in found if value in set(life.numbered)]
            assert mine == life.numbered, "a numbered message is missing, doubled or out of order"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error

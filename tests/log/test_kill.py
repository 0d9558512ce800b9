"""kill -9 of the server at random moments under load: what was acknowledged is there, once, in order.

`PENSTOCK_LOG_KILLS` says how often; `make soak` sets it to ten thousand. How far it is stands in target/kills, a file
for each mode, because processes of pytest-xdist show nothing.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.log.killing import PARTITIONS, Acknowledged, Hasty, Steady, Victim, read_all

KILLS = int(os.environ.get("PENSTOCK_LOG_KILLS", "20"))
REPORTS = Path(__file__).parents[2] / "target" / "kills"
REPORT_EVERY = 100


class Report:
    """What was done so far, for people who wait."""

    def __init__(self, mode: str) -> None:
        self.mode, self.began = mode, time.monotonic()
        REPORTS.mkdir(parents=True, exist_ok=True)
        self.file = REPORTS / f"{mode}.txt"
        self.file.write_text("")

    def say(self, kills: int, acknowledged: int, lost: int) -> None:
        seconds = time.monotonic() - self.began
        line = f"{self.mode}: {kills:,} kills in {seconds:,.0f} s, {acknowledged:,} acknowledged, {lost:,} of them lost"
        print(line, flush=True)
        with self.file.open("a") as file:
            file.write(f"{line}\n")


class Checker:
    """Knows what was stored and promised, and looks after every start whether it still is so."""

    def __init__(self, victim: Victim, mode: str) -> None:
        self.victim, self.address, self.mode = victim, victim.address, mode
        self.stored: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.lost = 0

    def check(self, promised: Acknowledged, hasty: list[Hasty], steady: Steady) -> None:
        for partition in range(PARTITIONS):
            before = self.stored[partition]
            # What stood before the last few thousand messages was looked at in earlier rounds, and is again at the end.
            start = max(0, min(len(before), min(promised.found[partition], default=len(before))) - 2000)
            now = read_all(self.address, partition, start)
            kept = before[start : self.victim.found[partition]]
            assert now[: len(kept)] == kept, "what was stored has changed"
            if self.mode != "memory":
                assert start + len(kept) == len(before), "what was stored is gone"
            before[start:] = now
            self.compare(partition, promised.found[partition])
            self.look_for_inventions(partition, now[len(kept) :], hasty, steady)

    def compare(self, partition: int, promised: dict[int, bytes]) -> None:
        stored = self.stored[partition]
        missing = {offset for offset in promised if offset >= self.victim.found[partition]}
        for offset, value in promised.items():
            if offset not in missing:
                assert stored[offset] == value, f"offset {offset} was promised to {value!r}, and has {stored[offset]!r}"
        if self.mode == "memory":
            self.lost += len(missing)  # a tail: all that is missing is behind all that is there
        else:
            assert not missing, f"{len(missing)} acknowledged messages are gone"

    def look_for_inventions(self, partition: int, found: list[bytes], hasty: list[Hasty], steady: Steady) -> None:
        """Among what was not there before."""
        for value in found:
            kind, one, two = value.split()
            if kind == b"steady":
                assert int(one) == partition
                assert int(two) < steady.sent[partition]
            else:
                assert int(two) < hasty[int(one)].sent
                assert int(two) % PARTITIONS == partition

    def check_order(self) -> None:
        for partition in range(PARTITIONS):
            numbers = [int(value.split()[2]) for value in self.stored[partition] if value.startswith(b"steady")]
            assert numbers == sorted(set(numbers)), "messages of a producer are doubled or out of order"
            doubled = [value for value, count in Counter(self.stored[partition]).items() if count > 1]
            assert not doubled, f"{doubled[:3]} are stored twice"
            if self.mode != "memory":
                assert numbers == list(range(len(numbers))), "a message of a producer is missing"


@pytest.mark.parametrize("mode", ["memory", "written", "fsynced"])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path, mode: str) -> None:
    chance = random.Random(mode)
    victim = Victim(tmp_path / "log")
    victim.start()
    steady = Steady(victim.address, mode)
    checker, hasty, report = Checker(victim, mode), [], Report(mode)
    acknowledged = 0
    try:
        for round in range(KILLS):
            promised = Acknowledged()
            hasty.append(Hasty(victim.address, mode, round))
            steady.running.set()
            time.sleep(chance.uniform(0.005, 0.08))
            victim.kill()
            steady.running.clear()
            hasty[-1].thread.join(20)
            while not steady.is_disconnected():
                time.sleep(0.001)
            time.sleep(0.005)  # answers that have arrived are given out
            acknowledged += steady.collect(promised)
            for partition, offset, value in hasty[-1].placed:
                promised.add(partition, offset, value)
            acknowledged += len(hasty[-1].placed)
            hasty[-1].placed.clear()
            assert steady.failure is None, steady.failure
            victim.start()
            checker.check(promised, hasty, steady)
            if round % REPORT_EVERY == REPORT_EVERY - 1:
                report.say(round + 1, acknowledged, checker.lost)
        finish(victim, steady, checker, hasty)
    finally:
        steady.ended.set()
        victim.end()
    report.say(KILLS, acknowledged, checker.lost)
    assert acknowledged > 10 * KILLS
    if mode != "memory":
        assert checker.lost == 0


def finish(victim: Victim, steady: Steady, checker: Checker, hasty: list[Hasty]) -> None:
    """All that the producer has sent arrives at last; then the server is asked to end, and everything is read again."""
    steady.ended.set()
    steady.thread.join(20)
    steady.producer.flush(60)
    promised = Acknowledged()
    steady.collect(promised)
    steady.producer.close()
    victim.kill(signal.SIGTERM)
    victim.start()
    everything = [read_all(victim.address, partition, 0) for partition in range(PARTITIONS)]
    for partition, values in enumerate(everything):
        assert values[: len(checker.stored[partition])] == checker.stored[partition]
    checker.check(promised, hasty, steady)
    assert checker.stored == everything
    checker.check_order()
    if checker.mode != "memory":
        for partition in range(PARTITIONS):
            numbers = [value for value in everything[partition] if value.startswith(b"steady")]
            assert len(numbers) == steady.sent[partition]

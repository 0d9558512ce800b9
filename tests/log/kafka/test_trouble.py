"""Kafka that is stopped, halted, slow; a log that is killed: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.log.errors import KafkaUnavailable, LogError
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Kafka, Settings
from tests.broker import Broker
from tests.log.checker import check, read_all
from tests.log.test_killed import WRITER
from tests.log.test_log import eventually

M, W, F = Acknowledge


class Load:
    """Two threads that push numbered values, and what was acknowledged."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.acknowledged: dict[int, bytes] = {}
        self.pushed: set[bytes] = set()
        self.failed: list[LogError] = []
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(2)]

    def _work(self, worker: int) -> None:
        number = 0
        while not self._end.is_set():
            values = [b"%d-%d" % (worker, number + place) for place in range(5)]
            number += 5
            self.pushed.update(values)
            try:
                receipt = self.log.append("t", 0, Frame.pack(values), F).result(100)
            except LogError as error:
                self.failed.append(error)
                continue
            self.acknowledged.update(zip(range(receipt.first, receipt.first + 5), values, strict=True))
            time.sleep(0.001)

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._end.set()
            for thread in self._threads:
                thread.join()

    def more(self, count: int = 50) -> None:
        """Wait until so many more were acknowledged."""
        goal, deadline = len(self.acknowledged) + count, time.monotonic() + 60
        while len(self.acknowledged) < goal:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def everything(log: Log) -> list[tuple[int, bytes]]:
    found = read_all(lambda offset: log.read("t", 0, offset))
    assert len({value for _, value in found}) == len(found), "something is there twice"
    return found


def in_order(found: list[tuple[int, bytes]]) -> bool:
    for worker in (b"0", b"1"):
        numbers = [int(value.split(b"-")[1]) for _, value in found if value.startswith(worker + b"-")]
        if numbers != sorted(numbers):
            return False
    return True


@pytest.mark.long
def test_a_broker_that_is_started_again_under_load(kafka: Broker, tmp_path: Path) -> None:
    settings = kafka.settings(timeout=90.0)
    with Log(tmp_path, settings) as log:
        log.create("t")
        load = Load(log)
        with load.running():
            for number in (signal.SIGTERM, signal.SIGKILL):
                load.more()
                os.kill(kafka.pid, number)
                kafka.stop()
                assert log.read("t", 0, 0).frames
                kafka.start()
                load.more()
        check(everything(log), load.acknowledged, load.pushed)
        assert not load.failed
    with Log(tmp_path, settings) as log:
        found = everything(log)
        check(found, load.acknowledged, load.pushed)
        assert in_order(found)


def test_a_halted_broker_fills_the_levels_and_no_more(kafka: Broker, tmp_path: Path) -> None:
    settings = kafka.settings(timeout=1.5, stall=0.3)
    value = os.urandom(10_000)
    with Log(tmp_path, settings) as log:
        log.create("t")
        log.append("t", 0, Frame.pack([b"first"])).result(60)
        kafka.halt()
        try:
            waiting = log.append("t", 0, Frame.pack([b"uncertain"]))
            with pytest.raises(KafkaUnavailable, match=r"bytes wait for Kafka, which has taken nothing for"):
                fill(log, value)
            began = time.monotonic()
            with pytest.raises(KafkaUnavailable, match="the levels are full"):
                log.append("t", 0, Frame.pack([value]), M)
            assert time.monotonic() - began < 0.2, "who knows that Kafka is stalled does not wait"
            taken = log._partitions["t", 0].next
            assert 100 < taken < 1000
            assert log._partitions["t", 0].stack.unstored < 4 << 20
            assert log.read("t", 0, 0).frames[0].values.to_pylist() == [b"first"]
            with pytest.raises(KafkaUnavailable, match=r"1 to 1 are not fsynced after 1\.5 s(.|\n)*may yet be"):
                waiting.result(60)
            assert log.ends("t", 0).next == 1, "what is uncertain is not shown"
        finally:
            kafka.go_on()
        eventually(lambda: log.ends("t", 0).next == taken)
        assert log.append("t", 0, Frame.pack([b"last"])).result(60).first == taken
        found = [value for _, value in read_all(lambda offset: log.read("t", 0, offset))]
        assert found == [b"first", b"uncertain", *[value] * (taken - 2), b"last"]


def fill(log: Log, value: bytes) -> None:
    for _ in range(1000):
        log.append("t", 0, Frame.pack([value]), M).result(0)


def test_a_log_that_is_closed_while_kafka_is_halted_says_what_is_missing(kafka: Broker, tmp_path: Path) -> None:
    settings = kafka.settings(timeout=5.0)
    log = Log(tmp_path, settings)
    log.create("t")
    log.append("t", 0, Frame.pack([b"a"])).result(60)
    kafka.halt()
    try:
        assert log.append("t", 0, Frame.pack([b"b"]), M).result(0).first == 1
        with pytest.raises(LogError, match="messages 1 to 1 are lost"):
            log.close()
    finally:
        kafka.go_on()
    with Log(tmp_path, kafka.settings(prefix=settings.last.prefix)) as log:  # type: ignore[union-attr]
        found = everything(log)
        assert found in ([(0, b"a")], [(0, b"a"), (1, b"b")])
        assert log.append("t", 0, Frame.pack([b"c"])).result(60).first == len(found)


def test_a_lost_producer_is_followed_by_one_that_knows_what_kafka_has(kafka: Broker, tmp_path: Path) -> None:
    with Log(tmp_path, kafka.settings()) as log:
        log.create("t")
        load = Load(log)
        assert log._kafka is not None
        with load.running():
            for _ in range(3):
                load.more()
                log._kafka._connection.lose("as a test wants it")
            load.more()
        found = everything(log)
        check(found, load.acknowledged, load.pushed)
        assert in_order(found)
        assert not load.failed


KILLED = WRITER.replace("from penstock.log import", "from penstock.log import Kafka,").replace(
    "Settings(segment_bytes=1 << 16, flush_after=0.02)", "Settings(last=Kafka(*sys.argv.pop().split(' ')))"
).replace("directory, mode, cycle = sys.argv[1:]", "directory, mode, cycle = sys.argv[1:4]")


@pytest.mark.parametrize("mode", [W, F], ids=str)
def test_a_killed_log_loses_nothing_that_was_acknowledged(kafka: Broker, tmp_path: Path, mode: Acknowledge) -> None:
    settings = kafka.settings()
    assert settings.last is not None
    acknowledged: dict[int, bytes] = {}
    for cycle in range(3):
        out = tmp_path / f"said-{cycle}"
        where = f"{settings.last.servers} {settings.last.prefix}"
        with out.open("wb") as said:
            command = [sys.executable, "-c", KILLED, str(tmp_path / "log"), str(mode), str(cycle), where]
            process = subprocess.Popen(command, stdout=said)
            try:
                eventually(lambda out=out: out.read_bytes().count(b"\n") > 200)  # type: ignore[misc]
            finally:
                process.kill()
                process.wait()
        lines = out.read_text().split("\n")[1:-1]
        acknowledged |= {int(offset): value.encode() for offset, value in (line.split() for line in lines)}
        with Log(tmp_path / "log", settings) as log:
            found = everything(log)
            pushed = [f"{one}-{place}".encode() for one in range(cycle + 1) for place in range(len(found) + 1)]
            check(found, acknowledged, pushed)


def test_a_log_can_be_closed_when_kafka_is_away_and_nothing_waits(kafka: Broker, tmp_path: Path) -> None:
    settings = Settings(last=Kafka(kafka.address, prefix="away-", timeout=2.0))
    log = Log(tmp_path, settings)
    log.create("t")
    log.append("t", 0, Frame.pack([b"a"])).result(60)
    kafka.halt()
    try:
        log.close()
    finally:
        kafka.go_on()

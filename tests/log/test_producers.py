"""Numbered producers: pushed again, there once; the old ones are ended; gaps are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log.errors import BadFrame, StaleProducer, WrongSequence
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.records import ProducerIdentity
from penstock.log.settings import Acknowledge, Settings
from tests.log.checker import read_all
from tests.log.simulated import SimulatedDisk
from tests.log.store.test_faults import SMALL, opened, read, round_of

ONE = ProducerIdentity(7, 0)


def numbered(values: list[bytes], sequence: int, producer: ProducerIdentity = ONE) -> Frame:
    return Frame.pack(values, producer=producer.id, epoch=producer.epoch, sequence=sequence)


@pytest.fixture
def log(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Log(tmp_path) as opened:
        opened.create("t", 2)
        yield opened


def push(log: Log, frame: Frame, mode: Acknowledge = Acknowledge.FSYNCED) -> tuple[int, int, bool]:
    receipt = log.append("t", 0, frame, mode).result(10)
    return receipt.first, receipt.count, receipt.duplicate


def test_a_push_that_comes_again_is_there_once(log: Log) -> None:
    assert push(log, numbered([b"a", b"b"], 0)) == (0, 2, False)
    assert push(log, numbered([b"c"], 2)) == (2, 1, False)
    assert push(log, numbered([b"a", b"b"], 0)) == (0, 2, True)
    assert push(log, numbered([b"c"], 2), Acknowledge.MEMORY) == (2, 1, True)
    assert push(log, Frame.pack([b"a"])) == (3, 1, False)
    assert log.ends("t", 0).next == 4


def test_a_gap_and_an_overlap_are_refused(log: Log) -> None:
    push(log, numbered([b"a", b"b"], 0))
    with pytest.raises(WrongSequence, match="from number 3, and 2 was expected"):
        log.append("t", 0, numbered([b"d"], 3))
    with pytest.raises(WrongSequence, match="push the same batch again"):
        log.append("t", 0, numbered([b"b", b"c"], 1))
    assert log.ends("t", 0).next == 2


def test_partitions_count_apart(log: Log) -> None:
    push(log, numbered([b"a"], 0))
    assert log.append("t", 1, numbered([b"b"], 0)).result(10).duplicate is False


def test_a_name_ends_who_had_it_before(log: Log) -> None:
    old = log.producer("billing")
    push(log, numbered([b"a"], 0, old))
    new = log.producer("billing")
    assert (new.id, new.epoch) == (old.id, old.epoch + 1)
    with pytest.raises(StaleProducer, match="another process writes under its name"):
        log.append("t", 0, numbered([b"b"], 1, old))
    with pytest.raises(StaleProducer):
        log.append("t", 1, numbered([b"b"], 0, old))
    with pytest.raises(WrongSequence, match="a new epoch begins with 0"):
        log.append("t", 0, numbered([b"b"], 1, new))
    assert push(log, numbered([b"b"], 0, new)) == (1, 1, False)
    assert log.producer("other").id != new.id
    assert log.producer().id != log.producer().id


def test_producers_are_known_after_every_kind_of_end(tmp_path: Path) -> None:
    for clean in (True, False):
        disk = SimulatedDisk()
        partition = opened(disk)
        for number in range(60):  # several segments
            producer = ProducerIdentity(number % 3, 0)
            partition.append(numbered([b"%d" % number] * 4, 4 * (number // 3), producer), Acknowledge.FSYNCED)
            round_of(partition)
        if clean:
            partition.close()
        again = opened(disk.after_power_loss())
        assert len(again.store.segments) > 1
        for producer in range(3):
            frame = numbered([b"%d" % (57 + producer)] * 4, 76, ProducerIdentity(producer, 0))
            receipt = again.append(frame, Acknowledge.FSYNCED).result(0)
            assert (receipt.duplicate, receipt.first) == (True, 4 * (57 + producer))
        with pytest.raises(WrongSequence):
            again.append(numbered([b"x"], 81, ProducerIdentity(0, 0)), Acknowledge.FSYNCED)
        assert len(read(again)) == 240


def test_an_index_that_is_lost_does_not_forget_producers() -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    for number in range(60):
        partition.append(numbered([b"%d" % number] * 4, 4 * number), Acknowledge.FSYNCED)
        round_of(partition)
    for path in [path for path in disk.names_seen if path.suffix == ".index"]:
        disk.remove(path)
    again = opened(disk.after_kill())
    assert again.append(numbered([b"59"] * 4, 236), Acknowledge.FSYNCED).result(0).duplicate


def test_a_retry_waits_until_the_first_try_is_durable() -> None:
    partition = opened(SimulatedDisk())
    first = partition.append(numbered([b"a"], 0), Acknowledge.FSYNCED)
    again = partition.append(numbered([b"a"], 0), Acknowledge.FSYNCED)
    assert not again.done()
    partition.write_pending()
    assert not again.done()
    partition.sync_pending(due=False)
    assert (first.result(0).duplicate, again.result(0).duplicate) == (False, True)


def test_the_oldest_producers_are_forgotten() -> None:
    settings = Settings(levels=SMALL.levels, throughput=1.0, producers=2)
    partition = opened(SimulatedDisk(), settings)
    for number in (1, 2, 3):
        partition.append(numbered([b"a"], 0, ProducerIdentity(number, 0)), Acknowledge.MEMORY)
    assert partition.append(numbered([b"a"], 0, ProducerIdentity(3, 0)), Acknowledge.MEMORY).result(0).duplicate
    assert not partition.append(numbered([b"a"], 0, ProducerIdentity(1, 0)), Acknowledge.MEMORY).result(0).duplicate


def test_joined_frames_cannot_be_appended(log: Log) -> None:
    joined = Frame.join([numbered([b"a"], 0), Frame.pack([b"b"], base=1)])
    with pytest.raises(BadFrame, match="pack its messages anew"):
        log.append("t", 0, joined)


def test_joining_keeps_who_produced_what(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        for number in range(50):
            frame = numbered([b"%d" % number], number // 2, ProducerIdentity(number % 2, 0))
            log.append("t", 0, frame, Acknowledge.MEMORY)
    with Log(tmp_path) as log:
        assert len(read_all(lambda offset: log.read("t", 0, offset))) == 50
        assert push(log, numbered([b"49"], 24, ProducerIdentity(1, 0))) == (49, 1, True)
        assert push(log, numbered([b"50"], 25, ProducerIdentity(0, 0))) == (50, 1, False)

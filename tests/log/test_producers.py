"""Numbered producers: pushed again, there once; the old ones are ended; gaps are refused."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log.errors import BadFrame, ForgottenPush, NotAcknowledged, StaleProducer, WrongSequence
from penstock.log.frame import Frame, Run
from penstock.log.log import Log
from penstock.log.partition import Partition
from penstock.log.producers import LARGEST_SEQUENCE, REMEMBERED, Evicted, Producers
from penstock.log.records import ProducerIdentity
from penstock.log.settings import Acknowledge, Retention, Settings
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
    receipt = log.append("t", 0, frame, mode).result(60)
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
    assert log.append("t", 1, numbered([b"b"], 0)).result(60).duplicate is False


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


def refused(partition: Partition, *frames: Frame) -> None:
    """Push them on a disk that is full, so that nothing of them is there; then there is room again."""
    disk = partition.store.disk  # type: ignore[attr-defined]
    disk.room = 0
    futures = [partition.append(frame, Acknowledge.FSYNCED) for frame in frames]
    round_of(partition)
    assert all(isinstance(future.exception(0), NotAcknowledged) for future in futures)
    disk.room = None
    partition._healed = 0.0


def stored(partition: Partition, frame: Frame) -> tuple[int, bool]:
    future = partition.append(frame, Acknowledge.FSYNCED)
    round_of(partition)
    return future.result(0).first, future.result(0).duplicate


def test_what_a_full_disk_refused_is_stored_when_it_is_pushed_again() -> None:
    partition = opened(SimulatedDisk())
    refused(partition, numbered([b"a"], 0), numbered([b"b"], 1))
    assert [stored(partition, numbered([b"a"], 0)), stored(partition, numbered([b"b"], 1))] == [(0, False), (1, False)]
    assert read(partition) == [(0, b"a"), (1, b"b")]


def test_more_pushes_on_the_way_than_are_remembered_are_all_taken_back() -> None:
    partition = opened(SimulatedDisk(), Settings(levels=()))
    frames = [numbered([b"%d" % number], number) for number in range(20)]
    others = [numbered([b"other"], number, ProducerIdentity(8, 0)) for number in range(20)]
    refused(partition, *(frame for pair in zip(frames, others, strict=True) for frame in pair))
    assert [stored(partition, frame) for frame in frames] == [(number, False) for number in range(20)]


def test_taking_back_restores_the_epoch_and_what_was_known_before() -> None:
    partition = opened(SimulatedDisk())
    for number in range(3):
        stored(partition, numbered([b"%d" % number], number))
        stored(partition, Frame.pack([b"between"]))
    refused(partition, numbered([b"new"], 0, ProducerIdentity(7, 1)))
    assert partition.numbered(7) == (0, 3)
    assert stored(partition, numbered([b"1"], 1)) == (2, True)
    assert stored(partition, numbered([b"3"], 3)) == (6, False)


def test_taking_back_restores_who_was_forgotten_for_it() -> None:
    settings = Settings(levels=SMALL.levels, throughput=1.0, producers=2)
    partition = opened(SimulatedDisk(), settings)
    one, two, three = (ProducerIdentity(number, 0) for number in (1, 2, 3))
    stored(partition, numbered([b"a"], 0, one))
    stored(partition, numbered([b"b"], 0, two))
    refused(partition, numbered([b"c"], 0, three), numbered([b"d"], 1, two))
    assert stored(partition, numbered([b"a"], 0, one)) == (0, True)
    stored(partition, numbered([b"c"], 0, three))  # of the two, it is again the first that is forgotten
    assert stored(partition, numbered([b"b"], 0, two)) == (1, True)


def test_a_producer_that_is_not_known_begins_with_zero(log: Log) -> None:
    with pytest.raises(WrongSequence, match="from number 5, and 0 was expected"):
        log.append("t", 0, numbered([b"f"], 5))
    assert push(log, numbered([b"a"], 0)) == (0, 1, False)


def test_a_push_of_which_it_is_forgotten_where_it_is_is_not_acknowledged(log: Log) -> None:
    for number in range(REMEMBERED + 2):
        push(log, numbered([b"%d" % number], number))
        push(log, Frame.pack([b"of nobody"]))
    assert push(log, numbered([b"2"], 2)) == (4, 1, True)
    with pytest.raises(ForgottenPush, match="do not push them again: 10 is the next number"):
        log.append("t", 0, numbered([b"0"], 0))
    assert log.ends("t", 0).next == 2 * REMEMBERED + 4


def test_a_producer_that_writes_alone_can_repeat_everything(tmp_path: Path) -> None:
    for again in (False, True):
        with Log(tmp_path) as log:
            log.create("t")
            for number in range(5 * REMEMBERED):
                assert push(log, numbered([b"%d" % number] * 2, 2 * number)) == (2 * number, 2, again)


def test_a_repeated_push_that_was_acknowledged_as_written_survives_a_failed_fsync() -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    first = partition.append(numbered([b"a"], 0), Acknowledge.FSYNCED)
    partition.write_pending()
    assert partition.append(numbered([b"a"], 0), Acknowledge.WRITTEN).result(0).duplicate
    disk.failing_syncs = 1
    partition.sync_pending(due=True)
    assert isinstance(first.exception(0), NotAcknowledged)
    assert read(opened(disk.after_kill())) == [(0, b"a")]


@pytest.mark.parametrize("clean", [True, False])
def test_a_producer_is_known_after_retention_removed_all_that_it_wrote(clean: bool) -> None:
    settings = Settings(levels=(), segment_bytes=4096, retention=Retention(bytes=0))
    disk = SimulatedDisk()
    partition = opened(disk, settings)
    stored(partition, numbered([b"a", b"b"], 0))
    while partition.ends().first < 2:
        stored(partition, Frame.pack([b"." * 1000]))
    if clean:
        partition.close()
    again = opened(disk.after_power_loss(), settings)
    assert again.ends().first >= 2
    assert again.numbered(7) == (0, 2)
    assert stored(again, numbered([b"b"], 1)) == (1, True)


def test_a_number_beyond_the_largest_is_refused_by_name(log: Log) -> None:
    push(log, numbered([b"a"], 0))
    for sequence in (LARGEST_SEQUENCE - 1, (1 << 63) - 1):
        with pytest.raises(WrongSequence, match=f"numbers end before {LARGEST_SEQUENCE}"):
            log.append("t", 0, numbered([b"b", b"c"], sequence))
    assert log.ends("t", 0).next == 1


@pytest.mark.parametrize("values", [[b"a", b"b", b"c"], [b"a" * 5000, b"b" * 5000, b"c" * 5000]])
def test_messages_with_too_large_numbers_that_were_stored_before_can_be_read(
    values: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SimulatedDisk()
    with monkeypatch.context() as patch:  # as it was before there was a limit
        patch.setattr("penstock.log.producers.LARGEST_SEQUENCE", 1 << 64)
        patch.setattr("penstock.log.producers._place", lambda run, stretches, expected: None)
        partition = opened(disk)
        partition.append(numbered([b"first"], 0), Acknowledge.FSYNCED)
        partition.append(numbered(values, (1 << 63) - 1), Acknowledge.FSYNCED)
        round_of(partition)
    for again in (partition, opened(disk.after_kill())):
        for offset, value in enumerate([b"first", *values]):
            assert again.read(offset, 1, 1).frames[0].values.to_pylist() == [value]
        assert [value for _, value in read(again)] == [b"first", *values]
        with pytest.raises(WrongSequence):
            again.append(numbered([b"d"], 1 << 62), Acknowledge.FSYNCED)
    again.close()
    assert [value for _, value in read(opened(disk.after_kill()))] == [b"first", *values]


def test_negative_numbers_are_refused(log: Log) -> None:
    for sequence in (-1, -5):
        with pytest.raises(WrongSequence):
            log.append("t", 0, numbered([b"a"], sequence))
    push(log, numbered([b"a"], 0))
    with pytest.raises(WrongSequence):
        log.append("t", 0, numbered([b"a"], -1))


def test_taking_back_is_exact_whatever_was_done() -> None:
    """Compared with producers that never saw what is taken back."""
    for seed in range(300):
        chance = random.Random(seed)
        producers, offset, history = Producers(3), 0, []
        producers.durable = 0
        for _ in range(60):
            run = _a_run(producers, chance)
            producers.add((run,), offset)
            history.append((run, offset))
            offset += run.messages + chance.choice((0, 0, 3))
            if chance.random() < 0.2:
                producers.durable = chance.randrange(producers.durable, offset + 1)
            if chance.random() < 0.15:
                offset = chance.choice([place for _, place in history if place >= producers.durable] or [offset])
                producers.undo(offset)
                history = [one for one in history if one[1] < offset]
                fresh = Producers(3)
                fresh.durable = 0
                for past, place in history:
                    fresh.add((past,), place)
                assert _shown(producers) == _shown(fresh), f"seed {seed}"


def test_what_is_packed_is_as_if_nothing_had_come_after_it() -> None:
    """Also who is the next to be forgotten."""
    for seed in range(300):
        chance = random.Random(seed)
        producers, fresh, offset = Producers(3), Producers(3), 0
        producers.durable = fresh.durable = 0
        before = chance.randrange(40)
        for _ in range(30):
            run = _a_run(producers, chance)
            producers.add((run,), offset)
            if offset + run.messages <= before:
                fresh.add((run,), offset)
            elif offset < before:
                fresh.add((Run(run.producer, run.sequence, run.epoch, before - offset),), offset)
            offset += run.messages
        again = Producers(3)
        again.load(producers.pack(before))
        assert _shown(again) == _shown(fresh), f"seed {seed}"


def _a_run(producers: Producers, chance: random.Random) -> Run:
    producer = chance.randrange(5)
    epoch, next = producers.last(producer) or (0, 0)
    if chance.random() < 0.1:
        epoch, next = epoch + 1, 0
    return Run(producer, next, epoch, chance.randrange(1, 4))


def _shown(producers: Producers) -> list[tuple[int, tuple[int, int] | None, object]]:
    """Who is known, in which order, up to which number, and where the newest durable messages are."""
    return [(number, producers.last(number), stretches[-1]) for number, stretches in producers._known.items()]


def test_a_producer_that_is_forgotten_while_others_are_packed_is_packed() -> None:
    producers = Producers(2)
    producers.durable = 0
    producers.add([Run(1, 0, 0, 1), Run(2, 0, 0, 1)], 0)

    class Meanwhile(deque[Evicted]):
        """Another thread writes just after somebody has looked at those that were forgotten."""

        def __iter__(self) -> Iterator[Evicted]:
            seen = list(super().__iter__())
            if 3 not in producers._known:
                producers.add([Run(3, 0, 0, 1)], 2)
            return iter(seen)

    producers._evicted = Meanwhile()
    again = Producers(9)
    again.load(producers.pack(2))
    assert {number: again.last(number) for number in (1, 2, 3)} == {1: (0, 1), 2: (0, 1), 3: None}

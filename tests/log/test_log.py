"""Log: topics, reading, times, groups, retention, and one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.log.errors import BadTopic, LogClosed, LogInUse, OffsetOutOfRange, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Retention, Settings
from penstock.log.topics import partition_of
from tests.log.checker import check, read_all

M, W, F = Acknowledge


def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def push(log: Log, *values: bytes, times: list[int] | None = None, partition: int = 0) -> int:
    return log.append("t", partition, Frame.pack(values, times=times)).result(60).first


BAD_NAMES = ["", ".", "..", "../x", "a/b", "/etc", "a\0b", "a\nb", ".hidden", "-x", "ä", "x" * 201, "a b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_could_leave_the_directory_is_refused(tmp_path: Path, name: str) -> None:
    with Log(tmp_path / "log") as log:
        with pytest.raises(BadTopic, match="letters, digits"):
            log.create(name)
        with pytest.raises(UnknownTopic):
            log.append(name, 0, Frame.pack([b"a"]))
        log.create("t")
        with pytest.raises(BadTopic):
            log.commit(name, "t", 0, 0)
        with pytest.raises(BadTopic):
            log.producer(name)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_unknown_topics_and_partitions_are_named(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("orders", 2)
        with pytest.raises(UnknownTopic, match="did you mean 'orders'"):
            log.read("order", 0, 0)
        with pytest.raises(UnknownTopic, match="has no partition 2"):
            log.append("orders", 2, Frame.pack([b"a"]))
        with pytest.raises(BadTopic, match="has 2 partitions, not 3"):
            log.create("orders", 3)
        assert log.create("orders", 2).partitions == 2
        with pytest.raises(BadTopic, match="1 to 1024"):
            log.create("many", 0)


def test_keys_keep_their_partition() -> None:
    assert [partition_of(b"key %d" % number, 7) for number in range(6)] == [6, 5, 5, 5, 3, 6]


def test_another_process_is_refused(tmp_path: Path) -> None:
    with Log(tmp_path):
        code = f"from penstock.log import Log; Log({str(tmp_path)!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "LogInUse" in done.stderr
        assert "reach the log through its server" in done.stderr
        with pytest.raises(LogInUse, match=r"process \d+ has the log"):
            Log(tmp_path)
    Log(tmp_path).close()


def test_a_closed_log_says_so(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.create("t")
    pending = log.append("t", 0, Frame.pack([b"a"]))
    log.close()
    log.close()
    assert pending.result(0).acknowledged is F
    for use in (lambda: log.read("t", 0, 0), lambda: log.append("t", 0, Frame.pack([b"a"])), lambda: log.create("u")):
        with pytest.raises(LogClosed):
            use()


def test_offsets_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        assert log.read("t", 0, 0).frames == ()
        push(log, b"a")
        assert log.read("t", 0, 1).frames == ()
        with pytest.raises(OffsetOutOfRange, match="offset 2 is not there yet"):
            log.read("t", 0, 2)
        with pytest.raises(OffsetOutOfRange):
            log.read("t", 0, -1)


@pytest.mark.parametrize("reopened", [False, True])
def test_a_time_is_found(tmp_path: Path, reopened: bool) -> None:
    settings = Settings(segment_bytes=4096, index_every=200)
    log = Log(tmp_path, settings)
    log.create("t")
    for number in range(0, 200, 2):
        push(log, b"x" * 50, b"y" * 50, times=[1000 + 10 * number, 1000 + 10 * number + 5])
    if reopened:
        log.close()
        log = Log(tmp_path, settings)
    with log:
        for number in range(0, 200, 2):
            assert log.offset_at("t", 0, 1000 + 10 * number) == number
            assert log.offset_at("t", 0, 1000 + 10 * number + 1) == number + 1
        assert log.offset_at("t", 0, 0) == 0
        assert log.offset_at("t", 0, 10**9) == 200


def test_groups_go_on_where_they_were(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        push(log, b"a", b"b")
        assert log.committed("g", "t", 0) is None
        log.commit("g", "t", 0, 1)
        log.commit("h", "t", 0, 2)
        log.commit("g", "t", 0, 2)
        log.commit("g", "t", 0, 1)
        with pytest.raises(OffsetOutOfRange, match="commits offset 3"):
            log.commit("g", "t", 0, 3)
    with Log(tmp_path) as log:
        assert (log.committed("g", "t", 0), log.committed("h", "t", 0)) == (1, 2)
        assert dict(log.groups()) == {("g", "t", 0): 1, ("h", "t", 0): 2}


def test_a_journal_does_not_grow_for_ever(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        push(log, *[b"x"] * 100)
        log._groups._journal._size = 2 << 20
        for offset in range(20):
            log.commit("g", "t", 0, offset)
        assert (tmp_path / "groups.journal").stat().st_size < 10_000
    with Log(tmp_path) as log:
        assert log.committed("g", "t", 0) == 19


def test_listeners_are_called_until_they_end_it(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        called = threading.Semaphore(0)
        cancel = log.on_append("t", 0, called.release)
        for mode in Acknowledge:
            log.append("t", 0, Frame.pack([b"a"]), mode).result(60)
            assert called.acquire(timeout=10)
        cancel()
        cancel()
        push(log, b"b")
        assert not called.acquire(timeout=0.1)


def test_retention_by_size_removes_the_oldest_and_readers_are_told(tmp_path: Path) -> None:
    settings = Settings(levels=(), segment_bytes=4096, retention=Retention(bytes=12_000))
    with Log(tmp_path, settings) as log:
        log.create("t")
        for number in range(100):
            push(log, b"%d" % number + b"x" * 400)
        first = log.ends("t", 0).first
        assert 60 < first < 90
        assert sum(path.stat().st_size for path in tmp_path.rglob("*.log")) < 17_000
        with pytest.raises(OffsetOutOfRange, match=rf"offset 0 is no longer there(.|\n)*read from {first}"):
            log.read("t", 0, 0)
        found = read_all(lambda offset: log.read("t", 0, offset), first)
        check(found, {}, [b"%d" % number + b"x" * 400 for number in range(100)], first)
        assert found[-1][0] == 99
    with Log(tmp_path, settings) as log:
        assert log.ends("t", 0).first == first


def test_retention_by_age_removes_even_the_last_segment_and_offsets_go_on(tmp_path: Path) -> None:
    settings = Settings(segment_bytes=4096, retention=Retention(age=3600, by_message_time=True))
    with Log(tmp_path, settings) as log:
        log.create("t")
        push(log, b"old", b"old", times=[1, 2])
        eventually(lambda: log.ends("t", 0).first == 2)
        with pytest.raises(OffsetOutOfRange, match="read from 2"):
            log.read("t", 0, 0)
        assert push(log, b"new") == 2
    with Log(tmp_path, settings) as log:
        assert (log.ends("t", 0).first, log.ends("t", 0).next) == (2, 3)


def test_retention_by_age_does_not_believe_the_times_of_publishers(tmp_path: Path) -> None:
    settings = Settings(segment_bytes=4096, retention=Retention(age=3600))
    with Log(tmp_path, settings) as log:
        log.create("t")
        push(log, b"from 1970", b"from the future", times=[1, 1 << 60])
        segment = tmp_path / "topics" / "t" / "0" / f"{0:020}.log"
        log._partition("t", 0).retain()
        assert log.ends("t", 0).first == 0
        assert log.offset_at("t", 0, 2) == 1
    with Log(tmp_path, settings) as log:
        log._partition("t", 0).retain()
        assert log.ends("t", 0).first == 0
    os.utime(segment, (0, time.time() - 3601))  # as a file is that nobody has written to for an hour
    with Log(tmp_path, settings) as log:
        log._partition("t", 0).retain()
        assert (log.ends("t", 0).first, push(log, b"new")) == (2, 2)


def test_what_nobody_waits_for_is_fsynced_after_a_while(tmp_path: Path) -> None:
    with Log(tmp_path, Settings(flush_after=0.05)) as log:
        log.create("t")
        log.append("t", 0, Frame.pack([b"a"]), M).result(0)
        eventually(lambda: log.ends("t", 0).durable == 1)


def test_messages_get_too_old_while_nothing_happens(tmp_path: Path) -> None:
    with Log(tmp_path, Settings(retention=Retention(age=0.3))) as log:
        log.create("t")
        push(log, b"a")
        eventually(lambda: log.ends("t", 0).first == 1)


def test_a_frame_larger_than_all_levels_goes_through(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        large = [bytes([number]) * (3 << 20) for number in range(4)]
        futures = [log.append("t", 0, Frame.pack([value]), M) for value in large]
        assert [future.result(60).acknowledged for future in futures] == [W] * 4
        push(log, b"small")
        found = read_all(lambda offset: log.read("t", 0, offset))
        assert [value for _, value in found] == [*large, b"small"]


def test_the_unit_of_retention_is_never_a_reader_s_range(tmp_path: Path) -> None:
    """A frame that was read stays readable when its segment is removed."""
    settings = Settings(levels=(), segment_bytes=4096, retention=Retention(bytes=8000))
    with Log(tmp_path, settings) as log:
        log.create("t")
        push(log, b"first" * 50)
        kept = log.read("t", 0, 0).frames[0]
        for _ in range(60):
            push(log, b"x" * 500)
        assert log.ends("t", 0).first > 0
        assert kept.values.to_pylist() == [b"first" * 50]


def test_a_listener_that_fails_does_no_harm(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("t")
        log.on_append("t", 0, lambda: 1 // 0)
        assert [push(log, b"a"), push(log, b"b")] == [0, 1]


def test_pushes_during_the_end_are_stored_or_refused(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.create("t")
    answered: list[bytes] = []

    def work() -> None:
        number = 0
        while True:
            value = b"%d" % number
            try:
                log.append("t", 0, Frame.pack([value]), M).result(60)
            except LogClosed:
                return
            answered.append(value)
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    while len(answered) < 50:
        time.sleep(0.001)
    log.close()
    thread.join()
    with Log(tmp_path) as again:
        assert [value for _, value in read_all(lambda offset: again.read("t", 0, offset))] == answered


def test_a_partition_without_messages_is_not_in_trouble_because_of_their_age(tmp_path: Path) -> None:
    with Log(tmp_path, Settings(retention=Retention(age=60))) as log:
        log.create("t")
        log._partitions["t", 0].retain()
        assert log.statistics().partitions[0].broken is None

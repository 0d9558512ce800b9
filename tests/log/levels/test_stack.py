"""Levels against a plain list: whatever is pushed, evicted, reopened or left out, readers see the list."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Kind, LevelSettings, Settings
from tests.log.checker import check, read_all

kinds = st.lists(st.sampled_from(Kind), max_size=4)


def stack_of(chosen: list[Kind], unit: int = 2048) -> Settings:
    """Levels so small that everything is evicted soon."""
    levels = tuple(LevelSettings(kind, unit << place, batch=200 << place, overlap=150, latency=0.0)
                   for place, kind in enumerate(chosen))  # fmt: skip
    return Settings(levels=levels, throughput=1.0, segment_bytes=8192, index_every=256, flush_after=0.05)


class LevelsAndAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="penstock-levels-"))
        self.model: list[bytes] = []
        self.number = 0

    @initialize(chosen=kinds)
    def begin(self, chosen: list[Kind]) -> None:
        self.log = Log(self.directory, stack_of(chosen))
        self.log.create("t")

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.directory)

    def _values(self, count: int, size: int) -> list[bytes]:
        self.number += count
        return [f"{self.number - count + place}".encode().ljust(size, b".") for place in range(count)]

    @rule(count=st.integers(1, 12), size=st.sampled_from([1, 30, 400]), mode=st.sampled_from(Acknowledge),
          keyed=st.booleans())  # fmt: skip
    def push(self, count: int, size: int, mode: Acknowledge, keyed: bool) -> None:
        values = self._values(count, size)
        frame = Frame.pack(values, keys=[b"k"] * count if keyed else None)
        receipt = self.log.append("t", 0, frame, mode).result(60)
        assert (receipt.first, receipt.count) == (len(self.model), count)
        self.model += values

    @rule(size=st.integers(3000, 20000))
    def push_what_no_level_can_hold(self, size: int) -> None:
        self.push(1, size, Acknowledge.MEMORY, False)

    @rule(pushes=st.integers(2, 4), mode=st.sampled_from(Acknowledge))
    def push_concurrently(self, pushes: int, mode: Acknowledge) -> None:
        parts = [[self._values(3, 60) for _ in range(5)] for _ in range(pushes)]
        answers: dict[int, list[bytes]] = {}

        def work(part: list[list[bytes]]) -> None:
            for values in part:
                answers[self.log.append("t", 0, Frame.pack(values), mode).result(60).first] = values

        threads = [threading.Thread(target=work, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        self._read_while(threads)
        for first in sorted(answers):
            assert first == len(self.model)
            self.model += answers[first]
        for part in parts:
            places = [self.model.index(values[0]) for values in part]
            assert places == sorted(places), "the order of one publisher is not kept"

    def _read_while(self, threads: list[threading.Thread]) -> None:
        while any(thread.is_alive() for thread in threads):
            reading = self.log.read("t", 0, max(0, len(self.model) - 3), most_bytes=500)
            known = self.model[reading.first :]
            values = [value for frame in reading.frames for value in frame.values.to_pylist()]
            assert values[: len(known)] == known[: len(values)]
        for thread in threads:
            thread.join()

    @precondition(lambda self: self.model)
    @rule(start=st.floats(0, 1), most_bytes=st.integers(1, 5000), most=st.none() | st.integers(1, 50))
    def read_a_range(self, start: float, most_bytes: int, most: int | None) -> None:
        offset = int(start * (len(self.model) - 1))
        reading = self.log.read("t", 0, offset, most_bytes=most_bytes, most_messages=most)
        values = [value for frame in reading.frames for value in frame.values.to_pylist()]
        assert values == self.model[offset : reading.next]
        assert values
        assert most is None or len(values) <= most

    @rule(chosen=kinds)
    def open_again_with_other_levels(self, chosen: list[Kind]) -> None:
        self.log.close()
        self.log = Log(self.directory, stack_of(chosen))

    @invariant()
    def the_log_is_the_list(self) -> None:
        if hasattr(self, "log"):
            found = read_all(lambda offset: self.log.read("t", 0, offset, most_bytes=3000))
            assert [value for _, value in found] == self.model


TestLevelsAndAList = LevelsAndAList.TestCase
TestLevelsAndAList.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_ranges_within_the_overlap_are_whole_in_one_level(tmp_path: Path) -> None:
    with Log(tmp_path, stack_of([Kind.MEMORY, Kind.MEMORY], 4096)) as log:
        log.create("t")
        for number in range(300):
            log.append("t", 0, Frame.pack([b"%05d" % number]), Acknowledge.MEMORY)
            stack = log._partitions["t", 0].stack
            first, second = stack.levels
            assert second.next >= first.first, "a message is in neither level"
            overlap = [entry for entry in first._entries[first._start :] if entry.header.base < second.next]
            if first._evicted:
                assert sum(entry.header.length for entry in overlap) >= 150


def test_counters_say_which_level_answered(tmp_path: Path) -> None:
    with Log(tmp_path, stack_of([Kind.MEMORY, Kind.SHARED], 4096)) as log:
        log.create("t")
        for number in range(200):
            log.append("t", 0, Frame.pack([b"%05d" % number]), Acknowledge.FSYNCED).result(60)
        assert log.read("t", 0, 199).level == 1
        assert log.read("t", 0, 199 - 4096 // 150 - 5, most_messages=1).level == 2
        assert log.read("t", 0, 0).level == 0
        first, second = log.statistics().partitions[0].levels
        assert (first.hits, first.misses, second.hits, second.misses) == (1, 2, 1, 1)
        assert first.available is not None
        assert second.bytes_written <= first.bytes_written
        assert log.statistics().partitions[0].syncs <= 200


def test_transfers_join_small_frames_into_batches(tmp_path: Path) -> None:
    with Log(tmp_path, Settings()) as log:
        log.create("t")
        for number in range(2000):
            log.append("t", 0, Frame.pack([b"%032d" % number]), Acknowledge.MEMORY)
        first, _ = log.statistics().partitions[0].levels
        assert first.batches < 250
        assert first.mean_batch >= 300


def test_level_3_is_a_mapped_file_that_goes_with_the_log(tmp_path: Path) -> None:
    with Log(tmp_path, stack_of([Kind.MAPPED])) as log:
        log.create("t")
        log.append("t", 0, Frame.pack([b"a"])).result(60)
        assert list(tmp_path.rglob("*.ring"))
        assert log.read("t", 0, 0).level == 1
    assert not list(tmp_path.rglob("*.ring"))


def test_a_reader_sees_nothing_before_it_is_acknowledged(tmp_path: Path) -> None:
    from tests.log.simulated import SimulatedDisk
    from tests.log.store.test_faults import opened, read, round_of

    partition = opened(SimulatedDisk())
    slow = partition.append(Frame.pack([b"a"]), Acknowledge.FSYNCED)
    fast = partition.append(Frame.pack([b"b"]), Acknowledge.MEMORY)
    assert fast.done()
    assert not slow.done()
    assert partition.ends().next == 0
    round_of(partition)
    check(read(partition), {0: b"a", 1: b"b"}, [b"a", b"b"])


@pytest.mark.parametrize("chosen", [[], [Kind.MEMORY], [Kind.MEMORY, Kind.SHARED, Kind.MAPPED]])
def test_group_commit_joins_those_who_wait(tmp_path: Path, chosen: list[Kind]) -> None:
    with Log(tmp_path, stack_of(chosen, 1 << 20)) as log:
        log.create("t")
        futures = [log.append("t", 0, Frame.pack([b"%d" % number])) for number in range(500)]
        assert [future.result(60).first for future in futures] == list(range(500))
        assert log.statistics().partitions[0].syncs < 250

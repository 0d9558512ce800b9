"""Nothing acknowledged is lost: power loss at every step, fsync that fails, a disk that is full."""

from __future__ import annotations

import random
from concurrent.futures import Future
from pathlib import Path

import pytest

from penstock.log.errors import NotAcknowledged
from penstock.log.frame import Frame
from penstock.log.partition import Partition
from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge, Kind, LevelSettings, Retention, Settings
from penstock.log.store.disk import Disk
from tests.log.checker import check, read_all
from tests.log.simulated import PowerLoss, SimulatedDisk

HERE = Path("/log/topics/t/0")
LEVELS = (LevelSettings(Kind.MEMORY, 4096, batch=300, overlap=200, latency=0.0),
          LevelSettings(Kind.MEMORY, 8192, batch=700, overlap=200, latency=0.0))  # fmt: skip
SMALL = Settings(levels=LEVELS, segment_bytes=4096, index_every=512, throughput=1.0)
M, W, F = Acknowledge


class ByHand:
    """No thread: the test says when there is a round."""

    def ask(self, partition: object) -> None: ...

    def later(self, partition: object) -> None: ...


def opened(disk: Disk, settings: Settings = SMALL) -> Partition:
    return Partition("t", 0, HERE, settings, disk, ByHand(), lambda producer: 0)  # type: ignore[arg-type]


def round_of(partition: Partition) -> None:
    partition.write_pending()
    partition.sync_pending(due=False)


def read(partition: Partition) -> list[tuple[int, bytes]]:
    return read_all(lambda offset: partition.read(offset, 1000, None), partition.ends().first)


class Story:
    """Pushes in all modes, rounds, new segments, a clean end, another opening; and what was answered."""

    def __init__(self, disk: SimulatedDisk, settings: Settings = SMALL) -> None:
        self.disk, self.settings = disk, settings
        self.pushed: list[bytes] = []
        self.answers: list[tuple[Future[Receipt], list[bytes]]] = []
        self.partition: Partition | None = None

    def push(self, mode: Acknowledge, count: int, size: int = 40) -> None:
        assert self.partition is not None
        values = [f"{len(self.pushed) + number}:".encode().ljust(size, b".") for number in range(count)]
        self.pushed += values
        self.answers.append((self.partition.append(Frame.pack(values), mode), values))

    def run(self, only: Acknowledge | None = None) -> None:
        chance = random.Random(5)
        for _ in range(2):
            self.partition = opened(self.disk, self.settings)
            for _ in range(12):
                for _ in range(chance.randrange(1, 5)):
                    mode = chance.choice((M, W, F))
                    self.push(only or mode, chance.randrange(1, 6), chance.choice((10, 60)))
                if chance.random() < 0.3:
                    self.partition.write_pending()
                else:
                    round_of(self.partition)
            self.partition.close()

    def acknowledged(self, least: Acknowledge) -> dict[int, bytes]:
        found = {}
        for future, values in self.answers:
            if future.done() and future.exception() is None and future.result().acknowledged >= least:
                found |= {future.result().first + place: value for place, value in enumerate(values)}
        return found


def steps_of_the_story(settings: Settings = SMALL) -> int:
    disk = SimulatedDisk()
    story = Story(disk, settings)
    story.run()
    assert len(story.acknowledged(M)) == len(story.pushed)
    return disk.steps


def test_the_story_rolls_segments_and_is_whole_without_faults() -> None:
    disk = SimulatedDisk()
    story = Story(disk)
    story.run()
    partition = opened(disk)
    check(read(partition), story.acknowledged(M), story.pushed)
    assert len(partition.store.segments) > 2
    assert partition.findings == []


@pytest.mark.parametrize("chance", [None, 1, 2, 3])
def test_power_loss_at_every_step_loses_nothing_that_was_fsynced(chance: int | None) -> None:
    for step in range(steps_of_the_story()):
        disk = SimulatedDisk()
        disk.crash_at = step
        story = Story(disk)
        with pytest.raises(PowerLoss):
            story.run()
        after = disk.after_power_loss(None if chance is None else random.Random(f"{chance} {step}"))
        _goes_on(story, after, F, f"step {step}, {disk.log[-1:]}")


def test_a_kill_at_every_step_loses_nothing_that_was_written() -> None:
    for step in range(steps_of_the_story()):
        disk = SimulatedDisk()
        disk.crash_at = step
        story = Story(disk)
        with pytest.raises(PowerLoss):
            story.run()
        _goes_on(story, disk.after_kill(), W, f"step {step}, {disk.log[-1:]}")


def _goes_on(story: Story, disk: SimulatedDisk, least: Acknowledge, where: str) -> None:
    """The log opens, has what it promised, takes more, and has that too when it is opened again."""
    partition = opened(disk)
    try:
        check(read(partition), story.acknowledged(least), story.pushed)
        before = read(partition)
        more = [partition.append(Frame.pack([f"more {number}".encode()]), F) for number in range(3)]
        round_of(partition)
        assert [future.result(0).first for future in more] == [len(before), len(before) + 1, len(before) + 2]
        again = opened(disk.after_power_loss())
        assert read(again) == [*before, *((len(before) + n, f"more {n}".encode()) for n in range(3))]
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}; {partition.findings}") from error


def test_a_second_power_loss_while_recovering_is_no_worse() -> None:
    disk = SimulatedDisk()
    disk.crash_at = steps_of_the_story() - 9
    story = Story(disk)
    with pytest.raises(PowerLoss):
        story.run()
    for step in range(30):
        torn = disk.after_power_loss(random.Random(3))
        torn.crash_at = step
        try:
            opened(torn).close()
        except PowerLoss:
            _goes_on(story, torn.after_power_loss(random.Random(step)), F, f"step {step}")


def test_an_fsync_that_fails_acknowledges_nothing_and_reads_go_on() -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    first = partition.append(Frame.pack([b"a", b"b"]), F)
    round_of(partition)
    assert first.result(0).acknowledged is F
    disk.failing_syncs = 1
    second, third = partition.append(Frame.pack([b"c"]), F), partition.append(Frame.pack([b"d"]), W)
    partition.write_pending()
    assert third.result(0).first == 3
    partition.sync_pending(due=False)
    with pytest.raises(NotAcknowledged, match="messages 2 to 2 are not fsynced: fsync failed"):
        second.result(0)
    assert [value for _, value in read(partition)] == [b"a", b"b", b"c", b"d"]
    again = partition.append(Frame.pack([b"e"]), F)
    round_of(partition)
    assert again.result(0).first == 4
    assert len(partition.store.segments) == 2
    after = read(opened(disk.after_power_loss()))
    assert [value for _, value in after] == [b"a", b"b", b"c", b"d", b"e"]


def test_after_a_failed_fsync_what_nobody_was_promised_is_taken_back() -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    partition.append(Frame.pack([b"a"]), F)
    round_of(partition)
    disk.failing_syncs = 1
    failed = partition.append(Frame.pack([b"b"], producer=9, sequence=0), F)
    round_of(partition)
    with pytest.raises(NotAcknowledged, match="they are not stored"):
        failed.result(0)
    again = partition.append(Frame.pack([b"b"], producer=9, sequence=0), F)
    round_of(partition)
    assert again.result(0) == Receipt("t", 0, 1, 1, F)
    assert read(opened(disk.after_power_loss())) == [(0, b"a"), (1, b"b")]
    assert read(opened(disk.after_kill())) == [(0, b"a"), (1, b"b")]


def test_a_disk_that_fails_for_good_refuses_by_name_and_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    partition.append(Frame.pack([b"a"]), F)
    round_of(partition)
    disk.failing_syncs = 1000
    failed = partition.append(Frame.pack([b"b"]), F)
    round_of(partition)
    assert isinstance(failed.exception(0), NotAcknowledged)
    with pytest.raises(NotAcknowledged, match="nothing can be written: fsync failed"):
        partition.append(Frame.pack([b"c"]), F)
    assert read(partition) == [(0, b"a")]
    disk.failing_syncs = 0
    monkeypatch.setattr("penstock.log.partition.committing._HEAL_EVERY", 0.0)
    mended = partition.append(Frame.pack([b"d"]), F)
    round_of(partition)
    assert mended.result(0).first == 1
    assert read(opened(disk.after_power_loss())) == [(0, b"a"), (1, b"d")]


@pytest.mark.parametrize("only", [W, F])
def test_a_full_disk_acknowledges_nothing_false_whatever_room_is_left(only: Acknowledge) -> None:
    for room in range(0, 9000, 331):
        disk = SimulatedDisk()
        story = Story(disk)
        story.partition = opened(disk)
        disk.room = room
        for _ in range(40):
            try:
                story.push(only, 3)
            except NotAcknowledged:
                story.pushed = story.pushed[:-3]
            round_of(story.partition)
        answered = story.acknowledged(only)
        assert len(answered) < len(story.pushed)
        check(read(story.partition), answered, story.pushed)
        check(read(opened(disk.after_power_loss(random.Random(room)))), story.acknowledged(F), story.pushed)
        disk.room = None
        story.partition._healed = 0.0
        story.push(F, 2)
        round_of(story.partition)
        assert story.answers[-1][0].result(0).count == 2
        check(read(opened(disk.after_kill())), story.acknowledged(W), story.pushed)


def test_messages_promised_in_memory_wait_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    disk.room = 0
    monkeypatch.setattr("penstock.log.partition.committing._HEAL_EVERY", 0.0)
    kept = partition.append(Frame.pack([b"a"]), M).result(0)
    failed = partition.append(Frame.pack([b"b"]), F)
    round_of(partition)
    assert kept.acknowledged is M
    with pytest.raises(NotAcknowledged, match="they are not stored"):
        failed.result(0)
    assert read(partition) == [(0, b"a")]
    disk.room = None
    partition.sync_pending(due=True)
    partition.write_pending()
    partition.sync_pending(due=True)
    assert read(opened(disk.after_power_loss())) == [(0, b"a")]


def test_a_full_memory_of_promises_refuses_more() -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    disk.room = 0
    values: list[bytes] = []

    def push_for_ever() -> None:
        while True:
            partition.append(Frame.pack([str(len(values)).encode()]), M)
            values.append(str(len(values)).encode())

    with pytest.raises(NotAcknowledged, match="nothing can be written"):
        push_for_ever()
    assert [value for _, value in read(partition)] == values


def test_retention_is_safe_at_every_step() -> None:
    settings = Settings(levels=LEVELS, segment_bytes=4096, throughput=1.0, retention=Retention(bytes=9000))
    for step in range(steps_of_the_story(settings)):
        disk = SimulatedDisk()
        disk.crash_at = step
        story = Story(disk, settings)
        with pytest.raises(PowerLoss):
            story.run()
        for after in (disk.after_power_loss(random.Random(step)), disk.after_kill()):
            partition = opened(after, settings)
            first = partition.ends().first
            acknowledged = {offset: value for offset, value in story.acknowledged(F).items() if offset >= first}
            check(read(partition), acknowledged, story.pushed, first)


def test_the_name_of_the_first_file_is_waited_for_by_who_asks_for_fsynced() -> None:
    disk = SimulatedDisk()
    partition = opened(disk)
    disk.log.clear()
    partition.append(Frame.pack([b"a"]), W)
    partition.write_pending()
    assert not any(step.startswith("sync directory") for step in disk.log)
    partition.append(Frame.pack([b"b"]), F)
    round_of(partition)
    assert any(step.startswith("sync directory") for step in disk.log)
    assert read(opened(disk.after_power_loss())) == [(0, b"a"), (1, b"b")]

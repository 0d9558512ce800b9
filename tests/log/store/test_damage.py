"""Damage: every cut and every flipped bit is noticed, named, and hides nothing else; nothing is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log.check import check as check_log
from penstock.log.errors import Damaged
from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.settings import Acknowledge, Settings
from penstock.log.store.segment import segment_path
from tests.log.checker import check, read_all
from tests.log.simulated import Inode, SimulatedDisk
from tests.log.store.test_faults import HERE, opened, read, round_of

NO_LEVELS = Settings(levels=(), segment_bytes=4096, index_every=64)
FRAMES = [[b"one", b"two"], [b"three"], [b"four", b"five", b"six"]]
VALUES = [value for frame in FRAMES for value in frame]
STARTS = [0, 2, 3, 6]
SEGMENT = segment_path(HERE, 0)


def written(*, clean: bool) -> SimulatedDisk:
    """A disk with three fsynced frames, after a clean end or a kill."""
    disk = SimulatedDisk()
    partition = opened(disk, NO_LEVELS)
    for values in FRAMES:
        partition.append(Frame.pack(values, keys=[b"k"] * len(values)), Acknowledge.FSYNCED)
        round_of(partition)
    if clean:
        partition.close()
    return disk


def with_content(disk: SimulatedDisk, path: Path, content: bytes) -> SimulatedDisk:
    copy = disk.after_kill()
    copy.names_seen[path] = copy.names_stable[path] = Inode(bytearray(content), content)
    return copy


def everything(disk: SimulatedDisk) -> bytes:
    """The bytes of all segments, then those of what was set aside."""
    files = sorted((path.suffix, path) for path in disk.names_seen if path.suffix in (".log", ".torn"))
    return b"".join(bytes(disk.names_seen[path].seen) for _, path in files)


def readable(disk: SimulatedDisk) -> tuple[dict[int, bytes], list[Damaged], int]:
    """What can be read, going on behind damage as the errors say."""
    partition = opened(disk, NO_LEVELS)
    found: dict[int, bytes] = {}
    errors: list[Damaged] = []
    offset = 0
    while offset < partition.ends().next:
        try:
            reading = partition.read(offset, 1, None)
        except Damaged as error:
            errors.append(error)
            offset = max(error.next or 0, offset + 1)
            continue
        for frame in reading.frames:
            found |= dict(zip(frame.offsets.tolist(), frame.values.to_pylist(), strict=True))
        offset = reading.next
    return found, errors, partition.ends().next


@pytest.mark.parametrize("clean", [True, False])
def test_the_last_segment_cut_at_every_byte(clean: bool) -> None:
    disk = written(clean=clean)
    content = bytes(disk.names_seen[SEGMENT].seen)
    ends = [frame.bytes for frame in _frames(content)]
    for size in range(len(content)):
        cut = with_content(disk, SEGMENT, content[:size])
        whole = sum(1 for place in range(3) if sum(ends[: place + 1]) <= size)
        partition = opened(cut, NO_LEVELS)
        if clean:  # a clean end was noted, so what is missing is known, and its offsets are not given again
            assert partition.ends().next == 6
            with pytest.raises(Damaged, match=f"offset {STARTS[whole]} to 5 cannot be read"):
                partition.read(STARTS[whole], 1000, None)
            assert len(partition.findings) == 1
        else:
            check(read(partition), dict(enumerate(VALUES[: STARTS[whole]])), VALUES)
        if whole:
            assert partition.read(0, 1 << 20, None).next == STARTS[whole]
        receipt = partition.append(Frame.pack([b"new"]), Acknowledge.FSYNCED)
        round_of(partition)
        assert partition.read(receipt.result(0).first, 100, None).frames[0].values.to_pylist() == [b"new"]
        assert content[:size] in everything(cut) or content[: sum(ends[:whole])] in everything(cut)


def _frames(content: bytes) -> list[Frame]:
    frames, place = [], 0
    while place < len(content):
        frames.append(Frame.parse(content[place:]))
        place += frames[-1].bytes
    return frames


@pytest.mark.parametrize("clean", [True, False])
def test_every_bit_of_a_segment_flipped_is_noticed_and_hides_only_its_frame(clean: bool) -> None:
    disk = written(clean=clean)
    content = bytearray(disk.names_seen[SEGMENT].seen)
    ends = [frame.bytes for frame in _frames(bytes(content))]
    for place in range(len(content)):
        for bit in range(8):
            content[place] ^= 1 << bit
            damaged = with_content(disk, SEGMENT, bytes(content))
            hit = next(number for number in range(3) if place < sum(ends[: number + 1]))
            found, errors, end = readable(damaged)
            hidden = set(range(STARTS[hit], STARTS[hit + 1]))
            if hit == 2 and not clean:  # nothing says that the last frame was ever durable: it is set aside, by name
                assert end == 3
                assert "a write did not end" in str(opened(with_content(disk, SEGMENT, bytes(content))).findings[0])
            else:
                assert end == 6
                assert str(SEGMENT) in str(errors[0].origin)
                assert [error.next for error in errors] == [STARTS[hit + 1]]
            assert found == {offset: value for offset, value in enumerate(VALUES) if offset not in hidden}
            assert bytes(content) == everything(damaged)[: len(content)], "bytes were deleted"
            content[place] ^= 1 << bit


def test_every_bit_of_an_index_flipped_does_no_harm() -> None:
    disk = written(clean=True)
    path = SEGMENT.with_suffix(".index")
    content = bytearray(disk.names_seen[path].seen)
    for place in range(len(content)):
        content[place] ^= 1 << (place % 8)
        found, errors, end = readable(with_content(disk, path, bytes(content)))
        assert (found, errors, end) == (dict(enumerate(VALUES)), [], 6)
        content[place] ^= 1 << (place % 8)


def test_a_value_that_looks_like_a_frame_is_not_taken_for_one() -> None:
    disk = SimulatedDisk()
    partition = opened(disk, NO_LEVELS)
    inner = bytes(Frame.pack([b"inner"] * 3).at(1).data)
    for values in ([b"a"], [b"pad" * 8 + inner], [b"c"]):
        partition.append(Frame.pack(values), Acknowledge.FSYNCED)
        round_of(partition)
    content = bytearray(disk.names_seen[SEGMENT].seen)
    content[content.index(b"padpad")] ^= 1
    found, errors, end = readable(with_content(disk, SEGMENT, bytes(content)))
    assert (found, end) == ({0: b"a", 2: b"c"}, 3)
    assert [error.next for error in errors] == [2]


def test_check_finds_what_is_damaged_and_says_where(tmp_path: Path) -> None:
    settings = Settings(levels=(), segment_bytes=4096)
    with Log(tmp_path, settings) as log:
        log.create("cars", 2)
        for number in range(60):
            log.append("cars", 1, Frame.pack([f"{number}:{place}".encode() * 9 for place in range(5)])).result(10)
    sound = check_log(tmp_path)
    assert (sound.is_sound, sound.topics, sound.partitions, sound.messages) == (True, 1, 2, 300)
    segments = sorted((tmp_path / "topics" / "cars" / "1").glob("*.log"))
    assert len(segments) > 3
    content = bytearray(segments[1].read_bytes())
    content[300] ^= 4
    segments[1].write_bytes(content)
    report = check_log(tmp_path)
    assert [Path(damage.path).name for damage in report.damages] == [segments[1].name]
    assert report.damages[0].first >= int(segments[1].stem)
    with Log(tmp_path, settings) as log, pytest.raises(Damaged) as raised:
        read_all(lambda offset: log.read("cars", 1, offset))
    assert raised.value.next == report.damages[0].next
    segments[2].write_bytes(segments[2].read_bytes()[:1000])
    assert len(check_log(tmp_path).damages) == 2


def test_check_says_that_a_log_is_in_use(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create("cars")
        log.append("cars", 0, Frame.pack([b"a"])).result(10)
        report = check_log(tmp_path)
    assert report.is_sound
    assert "has the log of" in report.notes[0]


def test_check_refuses_a_directory_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="holds no log"):
        check_log(tmp_path)
    assert list(tmp_path.iterdir()) == []

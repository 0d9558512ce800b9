"""Damage: every cut and every flipped bit is noticed, named, and hides nothing else; nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from penstock.log.check import check as check_log
from penstock.log.errors import Damaged, NotAcknowledged
from penstock.log.frame import Frame
from penstock.log.header import parse_header
from penstock.log.log import Log
from penstock.log.reader import FileReader
from penstock.log.settings import Acknowledge, Settings
from penstock.log.store.recovery import damaged
from penstock.log.store.segment import segment_path
from tests.log.checker import check, read_all
from tests.log.simulated import Inode, SimulatedDisk
from tests.log.store.test_faults import HERE, opened, read, round_of

NO_LEVELS = Settings(levels=(), segment_bytes=4096, index_every=64)
ONE_ENTRY = Settings(levels=(), segment_bytes=4096, index_every=4096)
FRAMES = [[b"one", b"two"], [b"three"], [b"four", b"five", b"six"]]
VALUES = [value for frame in FRAMES for value in frame]
STARTS = [0, 2, 3, 6]
SEGMENT = segment_path(HERE, 0)


KNOWN = pytest.mark.parametrize("known", ["end", "mark", ""])
"""What says how much was durable: a clean end, the mark that a killed process left, or nothing but the frames."""


def written(*, known: str = "end", settings: Settings = NO_LEVELS) -> SimulatedDisk:
    """A disk with three fsynced frames, after a clean end or a kill."""
    disk = SimulatedDisk()
    partition = opened(disk, settings)
    for values in FRAMES:
        partition.append(Frame.pack(values, keys=[b"k"] * len(values)), Acknowledge.FSYNCED)
        round_of(partition)
    if known == "end":
        partition.close()
    if known != "mark":
        disk.remove(HERE / "durable")
    return disk


def with_content(disk: SimulatedDisk, path: Path, content: bytes) -> SimulatedDisk:
    copy = disk.after_kill()
    copy.names_seen[path] = copy.names_stable[path] = Inode(bytearray(content), content)
    return copy


def everything(disk: SimulatedDisk) -> bytes:
    """The bytes of all segments, then those of what was set aside."""
    files = sorted((path.suffix, path) for path in disk.names_seen if path.suffix in (".log", ".torn"))
    return b"".join(bytes(disk.names_seen[path].seen) for _, path in files)


def readable(disk: SimulatedDisk, settings: Settings = NO_LEVELS) -> tuple[dict[int, bytes], list[Damaged], int]:
    """What can be read, going on behind damage as the errors say."""
    partition = opened(disk, settings)
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


@KNOWN
def test_the_last_segment_cut_at_every_byte(known: str) -> None:
    disk = written(known=known)
    content = bytes(disk.names_seen[SEGMENT].seen)
    ends = [frame.bytes for frame in _frames(content)]
    for size in range(1, len(content)):
        cut = with_content(disk, SEGMENT, content[:size])
        whole = sum(1 for place in range(3) if sum(ends[: place + 1]) <= size)
        partition = opened(cut, NO_LEVELS)
        if known:  # what is missing is known, and its offsets are not given again
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


@KNOWN
def test_every_bit_of_a_segment_flipped_is_noticed_and_hides_only_its_frame(known: str) -> None:
    disk = written(known=known)
    content = bytearray(disk.names_seen[SEGMENT].seen)
    ends = [frame.bytes for frame in _frames(bytes(content))]
    for place in range(len(content)):
        for bit in range(8):
            content[place] ^= 1 << bit
            damaged = with_content(disk, SEGMENT, bytes(content))
            hit = next(number for number in range(3) if place < sum(ends[: number + 1]))
            found, errors, end = readable(damaged)
            hidden = set(range(STARTS[hit], STARTS[hit + 1]))
            if hit == 2 and not known:  # nothing says that the last frame was ever durable: it is set aside, by name
                assert end == 3
                assert "a write did not end" in str(opened(with_content(disk, SEGMENT, bytes(content))).findings[0])
            else:
                assert end == 6
                assert str(SEGMENT) in str(errors[0].origin)
                assert [error.next for error in errors] == [STARTS[hit + 1]]
            assert found == {offset: value for offset, value in enumerate(VALUES) if offset not in hidden}
            assert bytes(content) == everything(damaged)[: len(content)], "bytes were deleted"
            content[place] ^= 1 << bit


@pytest.mark.parametrize("hit", [0, 1, 2])
@pytest.mark.parametrize("place", [8, 130])
def test_damage_hides_only_its_frame_where_the_index_knows_none_behind_it(hit: int, place: int) -> None:
    disk = written(settings=ONE_ENTRY)
    content = bytearray(disk.names_seen[SEGMENT].seen)
    starts = [frame.bytes for frame in _frames(bytes(content))]
    content[sum(starts[:hit]) + place] ^= 1
    damaged = with_content(disk, SEGMENT, bytes(content))
    found, errors, _ = readable(damaged, ONE_ENTRY)
    hidden = range(STARTS[hit], STARTS[hit + 1])
    assert found == {offset: value for offset, value in enumerate(VALUES) if offset not in hidden}
    assert [error.next for error in errors] == [STARTS[hit + 1]]
    for offset, value in found.items():
        first = opened(damaged, ONE_ENTRY).read(offset, 1, None).frames[0]
        assert (first.first, first.values[0].as_py()) == (offset, value)


def test_every_bit_of_an_index_flipped_does_no_harm() -> None:
    disk = written()
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


def test_a_damaged_header_that_an_index_points_to_hides_only_its_own_messages(tmp_path: Path) -> None:
    settings = Settings(levels=(), segment_bytes=4096, index_every=512)
    with Log(tmp_path, settings) as log:
        log.create("cars")
        for number in range(40):
            log.append("cars", 0, Frame.pack([b"%d" % number * 9] * 3)).result(60)
    segment = sorted((tmp_path / "topics" / "cars" / "0").glob("*.log"))[0]
    content, position = segment.read_bytes(), 0
    for frame in _frames(content):
        segment.write_bytes(content[: position + 50] + b"?" + content[position + 51 :])
        hidden = list(range(frame.first, frame.next))
        with Log(tmp_path, settings) as log:
            reader = FileReader(tmp_path, "cars")
            expected = dict.fromkeys(hidden, frame.next)
            assert _unreadable(partial(log.read, "cars", 0)) == _unreadable(partial(_piece, reader)) == expected
            damages = check_log(tmp_path).damages
            assert [(damage.first, damage.next) for damage in damages] == [(frame.first, frame.next)]
        position += frame.bytes
    segment.write_bytes(content)


def _unreadable(read_one: Callable[[int], object]) -> dict[int, int | None]:
    errors = {}
    for offset in range(120):
        try:
            read_one(offset)
        except Damaged as error:
            errors[offset] = error.next
    return errors


def _piece(reader: FileReader, offset: int) -> None:
    assert [piece.first for piece in reader.pieces(0, offset, offset + 1)] == [offset]


def test_check_names_what_is_damaged_in_the_last_segment_of_a_log_that_is_in_use(tmp_path: Path) -> None:
    with Log(tmp_path, Settings(levels=())) as log:
        log.create("cars")
        for _ in range(3):
            log.append("cars", 0, Frame.pack([b"a", b"b"])).result(60)
        [segment] = (tmp_path / "topics" / "cars" / "0").glob("*.log")
        content = bytearray(segment.read_bytes())
        content[-len(content) // 3 + 50] ^= 1
        with segment.open("r+b") as file:
            file.write(content)
        assert [(damage.first, damage.next) for damage in check_log(tmp_path).damages] == [(4, 6)]


@pytest.mark.parametrize("how", ["emptied", "deleted", "all deleted"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_last_segment_that_is_gone_is_not_written_over(how: str, clean: bool) -> None:
    disk = SimulatedDisk()
    partition = opened(disk, NO_LEVELS)
    for number in range(90):
        partition.append(Frame.pack([b"%d" % number * 20]), Acknowledge.FSYNCED)
        round_of(partition)
    if clean:
        partition.close()
    segments = sorted(path for path in disk.names_seen if path.suffix == ".log")
    base = 0 if how == "all deleted" else int(segments[-1].stem)
    if how == "emptied":
        disk = with_content(disk, segments[-1], b"")
    else:
        for path in segments if how == "all deleted" else segments[-1:]:
            disk.remove(path)
    content = {path: bytes(inode.seen) for path, inode in disk.names_seen.items()}
    again = opened(disk, NO_LEVELS)
    with pytest.raises(NotAcknowledged, match=f"messages {base} to 89 were durable, and are not there") as raised:
        again.append(Frame.pack([b"new"]), Acknowledge.FSYNCED)
    assert f"restore {segments[-1] if base else SEGMENT} from a copy" in str(raised.value.fix)
    assert [(finding.first, finding.next) for finding in again.findings] == [(base, 90)]
    round_of(again)
    if base:
        assert again.read(base - 1, 1, None).frames[0].values.to_pylist() == [b"%d" % (base - 1) * 20]
        with pytest.raises(Damaged) as missing:
            again.read(base, 1, None)
        assert missing.value.next == 90
    again.close()
    assert {path: bytes(inode.seen) for path, inode in disk.names_seen.items()} == content
    disk.open(segment_path(HERE, 90), create=True).close()  # as the error says, to go on without them
    going_on = opened(disk, NO_LEVELS)
    future = going_on.append(Frame.pack([b"new"]), Acknowledge.FSYNCED)
    round_of(going_on)
    assert future.result(0).first == 90


@pytest.mark.parametrize("how", ["emptied", "deleted", "all deleted"])
@pytest.mark.parametrize("clean", [True, False])
def test_check_names_a_last_segment_that_is_gone(tmp_path: Path, how: str, clean: bool) -> None:
    settings = Settings(levels=(), segment_bytes=4096)
    with Log(tmp_path, settings) as log:
        log.create("cars")
        for _ in range(40):
            log.append("cars", 0, Frame.pack([b"." * 200])).result(60)
    segments = sorted((tmp_path / "topics" / "cars" / "0").glob("*.log"))
    if not clean:
        segments[-1].with_suffix(".index").unlink()
    for path in segments if how == "all deleted" else segments[-1:]:
        path.write_bytes(b"") if how == "emptied" else path.unlink()
    base = 0 if how == "all deleted" else int(segments[-1].stem)
    report = check_log(tmp_path)
    assert [(damage.first, damage.next) for damage in report.damages] == [(base, 40)]
    assert ("empty" if how == "emptied" else "gone") in report.damages[0].what


def test_check_finds_what_is_damaged_and_says_where(tmp_path: Path) -> None:
    settings = Settings(levels=(), segment_bytes=4096)
    with Log(tmp_path, settings) as log:
        log.create("cars", 2)
        for number in range(60):
            log.append("cars", 1, Frame.pack([f"{number}:{place}".encode() * 9 for place in range(5)])).result(60)
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
        log.append("cars", 0, Frame.pack([b"a"])).result(60)
        report = check_log(tmp_path)
    assert report.is_sound
    assert "has the log of" in report.notes[0]


def test_check_refuses_a_directory_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="holds no log"):
        check_log(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_of_a_damaged_frame_elsewhere_does_not_hide_what_follows() -> None:
    content = bytes(written().names_seen[SEGMENT].seen)
    length = parse_header(content).length
    view = memoryview(_flipped(content[:length], 100) + content)
    for whole, following in ((view, 2), (view[: 2 * length], 6)):
        assert damaged(SEGMENT, whole, 0, 0, "it is damaged", 6).next == following


def _flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]

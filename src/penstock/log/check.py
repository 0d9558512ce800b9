"""Check a log: read every byte and compare it with its checksum. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.log.errors import Damaged, LogInUse
from penstock.log.frame import Frame
from penstock.log.settings import Settings
from penstock.log.store.disk import Disk, RealDisk
from penstock.log.store.finding import Finding
from penstock.log.store.index import NEVER
from penstock.log.store.mark import read_mark
from penstock.log.store.opening import is_torn, lost_file, segments_of
from penstock.log.store.recovery import scan
from penstock.log.store.segment import Segment
from penstock.log.topics import KAFKA_NOTE, Topics

_ASIDE = {".torn": "a write that did not end, set aside when the log was opened",
          ".failed": "a segment that could not be fsynced, set aside"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checked:
    """What was read, what is damaged, and what is only worth mentioning."""

    topics: int
    partitions: int
    segments: int
    messages: int
    bytes: int
    damages: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not self.damages


def check(directory: Path, disk: Disk | None = None) -> Checked:
    """Read all segments of the log in `directory`. While a process writes it, its last messages are not judged."""
    disk = disk or RealDisk()
    if directory.is_file() or "topics" not in disk.names(directory):
        raise Damaged(f"{directory} holds no log", None, "give the directory that the log was opened with")
    notes: list[str] = []
    in_use = _in_use(disk, directory)
    if in_use:
        notes.append(f"{in_use}: what it writes now is not judged")
    topics = Topics(disk, directory / "topics")
    found = _Found([], notes)
    partitions = 0
    for topic in topics.known.values():
        if disk.read(topics.directory / topic.name / KAFKA_NOTE) is not None:
            notes.append(f"the messages of topic {topic.name!r} are in Kafka: not read")
        for number in range(topic.partitions):
            partitions += 1
            _check_partition(disk, topics.partition(topic.name, number), found, bool(in_use))
    for name in ("groups.journal", "producers.journal"):
        for damage in scan(memoryview(disk.read(directory / name) or b""), 0, 1 << 30).damages:
            found.damages.append(Finding(str(directory / name), damage.position, damage.first, damage.next, damage.why,
                                         "not changed"))  # fmt: skip
    return Checked(len(topics.known), partitions, found.segments, found.messages, found.bytes,
                   tuple(found.damages), tuple(notes))  # fmt: skip


@dataclass(slots=True)
class _Found:
    damages: list[Finding]
    notes: list[str]
    segments: int = 0
    messages: int = 0
    bytes: int = 0


def _in_use(disk: Disk, directory: Path) -> str | None:
    try:
        disk.lock(directory / "lock").close()
    except LogInUse as error:
        return error.what
    return None


def _check_partition(disk: Disk, directory: Path, found: _Found, in_use: bool) -> None:
    marked = read_mark(disk, directory) or 0  # before the names: who writes now may begin a segment
    segments = segments_of(disk, directory, Settings().index_every)
    gone = lost_file(directory, segments, marked)
    if gone is not None:
        found.damages.append(replace(gone, done="not changed"))
        marked = 0
    for segment in segments:
        try:
            _check_segment(segment, found, in_use, marked)
        finally:
            segment.close()
    for name in disk.names(directory):
        reason = _ASIDE.get(Path(name).suffix)
        if reason is not None:
            found.notes.append(f"{directory / name}: {reason}")


def _check_segment(segment: Segment, found: _Found, in_use: bool, marked: int) -> None:
    size = segment.file.size()
    result = scan(segment.file.map(size), segment.base, segment.every, limit=segment.limit, see=_counting(found))
    found.segments += 1
    found.bytes += size
    index, last, place = segment.stored_index(), segment.limit is None, str(segment.path)
    durable = max(result.durable, marked, NEVER if index is None or not size else index.end) if last else segment.limit
    assert durable is not None
    for damage in result.damages:
        after = damage.next if damage.next is not None else (durable if durable > damage.first else None)
        if last and is_torn(damage, durable):
            if not in_use:
                said = "a write did not end; opening the log sets it aside"
                found.notes.append(f"{place} byte {damage.position}: {said}")
        else:
            found.damages.append(Finding(place, damage.position, damage.first, after, damage.why, "not changed"))
    reached = max(result.index.end, *(damage.next or result.index.end for damage in result.damages), 0)
    if reached < durable and not any(damage.next is None for damage in result.damages):
        found.damages.append(Finding(place, size, reached, durable, "the file ends too early", "not changed"))
    if not last and index is None:
        found.notes.append(f"{place}: its index is missing or damaged; reading makes it again")



def _counting(found: _Found) -> Callable[[Frame], None]:
    def see(frame: Frame) -> None:
        found.messages += frame.count

    return see

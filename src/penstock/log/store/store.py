"""Store: the durable last level of a partition, a row of segments of which the last one grows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.log.errors import NotAcknowledged, OffsetOutOfRange
from penstock.log.frame import Frame
from penstock.log.settings import Settings
from penstock.log.store.disk import Disk
from penstock.log.store.index import Index
from penstock.log.store.mark import Mark
from penstock.log.store.retention import enforce
from penstock.log.store.segment import Segment, segment_path


class Store:
    """One thread writes and fsyncs at a time; any number read."""

    name, remedy = "the disk", "mend the disk; what is stored can still be read"
    unavailable: type[NotAcknowledged] = NotAcknowledged
    unsynced: tuple[str, str] | None = None
    stall, stalled, trouble = 0.0, 0.0, ""
    timeout: float | None = None
    refused: NotAcknowledged | None = None

    def __init__(self, disk: Disk, directory: Path, settings: Settings, segments: Sequence[Segment],
                 producers: Callable[[int], bytes]) -> None:  # fmt: skip
        self.disk, self.directory, self.settings = disk, directory, settings
        self.segments = tuple(segments)
        self._producers = producers
        self.active = self.segments[-1]
        self.end = self.active.end
        """The offset after the last that is in a file."""
        self.durable = self.end
        """The offset after the last that is fsynced."""
        self._synced_size = self.active.size
        self.suspect = False
        """Whether an fsync failed: nobody knows what is on the disk, until `restart`."""
        self.is_begun = True
        """Whether the last segment has a file. That of a partition without messages is made by the first one."""
        self._is_named = True
        """Whether the name of that file stays, whatever happens: what is only written need not wait for that."""
        self.is_sealed = False
        """Whether the file of its index says all there is."""
        self.writes = self.syncs = 0
        self._mark = Mark(disk, directory)

    @property
    def first(self) -> int:
        return self.segments[0].base

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def pieces(self) -> int:
        return len(self.segments)

    @property
    def taken(self) -> int:
        return self.end

    def write(self, frames: Sequence[Frame]) -> None:
        """Append frames by one write. After an OSError none of them is there."""
        if self.active.index.size >= self.settings.segment_bytes:
            self.roll()
        if not self.is_begun:
            self.begin()
        self.is_sealed = False
        self.end = self.active.append(frames)
        self.writes += 1

    def begin(self) -> None:
        """Make the first file."""
        self.active.make()
        self.is_begun, self._is_named = True, False

    def sync(self) -> None:
        """Everything written is durable afterwards, unless this raises."""
        assert not self.suspect
        if self.durable < self.end:
            try:
                self.active.file.sync()
                if not self._is_named:
                    self.disk.sync_directory(self.directory)
                    self._is_named = True
            except OSError:
                self.suspect = True
                raise
            self.syncs += 1
            self.durable, self._synced_size = self.end, self.active.size
            self.show_durable()

    def show_durable(self) -> None:
        """Let other processes know what they may read."""
        self._mark.set(self.durable)

    def roll(self) -> None:
        """Seal the last segment and begin another."""
        if self.active.size:
            self.sync()
            self.active.seal(self._producers(self.end))
            self._begin(self.end)

    def read(self, offset: int, most_bytes: int, most_messages: int | None) -> list[Frame]:
        segments = self.segments
        place = bisect_right(segments, offset, key=lambda segment: segment.base) - 1
        if place < 0:
            raise gone(offset, segments[0].base, str(self.directory))
        try:
            return segments[place].read(offset, most_bytes, most_messages)
        except FileNotFoundError:  # removed a moment ago
            if segments is self.segments:
                raise
            return self.read(offset, most_bytes, most_messages)

    def offset_at(self, time: int) -> int:
        """The first offset whose message is not before `time`, or the end."""
        for segment in self.segments:
            offset = segment.offset_at(time)
            if offset is not None:
                return offset
        return self.end

    def retain(self) -> None:
        enforce(self, self.settings.retention)

    def tell(self, call: Callable[[], None]) -> None:
        """Do nothing: everything is written when `write` returns."""

    def undo_write(self) -> None:
        """After a failed write: the file ends with its last whole frame, so that it can be written again."""
        if self.refused is not None:
            raise self.refused
        if self.is_begun:
            self.active.file.truncate(self.active.size)

    def restart(self, upto: int) -> None:
        """After a failed fsync: begin a segment after what is known to be durable.

        The kernel may have forgotten the pages that it could not write, so asking again proves nothing. What was
        written since the last good fsync is read back, checked, and, up to the offset `upto`, written and fsynced anew,
        elsewhere. The old file keeps its bytes: readers may have them mapped.
        """
        saved, old, base = self._read_back(upto), self.active, self.durable
        path = segment_path(self.directory, base)
        self._write_new(path.with_suffix(".new"), saved)
        kept = self.segments[:-1]
        if old.base < base:
            sealed = Segment(self.disk, old.path, old.base, old.every, _shorter(old, self._synced_size, base))
            sealed.seal(self._producers(base))
            sealed.limit = base
            kept = (*kept, sealed)
        elif old.size:
            self.disk.link(old.path, free_name(self.disk, old.path, "failed"))
        # Until here a kill finds the old segment as it was, and from here on the new one with all that counts.
        self.disk.rename(path.with_suffix(".new"), path)
        self.active = Segment(self.disk, path, base, old.every, _index_of(saved, base, old.every))
        self.is_sealed = False
        self.segments = (*kept, self.active)
        self.end = self.durable = self.active.end
        self._synced_size = self.active.size
        self.suspect = False
        self.show_durable()

    def _write_new(self, path: Path, frames: Sequence[Frame]) -> None:
        file = self.disk.open(path, create=True)
        try:
            file.truncate(0)
            if frames:
                file.write(0, [frame.data for frame in frames])
            file.sync()
        finally:
            file.close()

    def begin_after_damage(self, base: int) -> None:
        """Leave the last segment as it is, and begin another with the offset `base`."""
        self.active.seal(self._producers(self.end))
        self.end = self.durable = base
        self._begin(base)
        self.show_durable()

    def drop_before(self, segments: int) -> None:
        """Remove the oldest segments. What the last index of them says of producers is kept with what is left."""
        if 0 < segments == len(self.segments) - 1:
            left = _shorter(self.active, self._synced_size, self.durable)
            Segment(self.disk, self.active.path, self.active.base, left.every, left).seal(self._producers(self.durable))
        dropped, self.segments = self.segments[:segments], self.segments[segments:]
        for segment in dropped:
            self.disk.remove(segment.path.with_suffix(".index"))
            self.disk.remove(segment.path)
            segment.close()
        if dropped:
            self.disk.sync_directory(self.directory)

    def close(self) -> None:
        """Fsync, and note that nothing is missing at the end. Without that note, the next opening reads more."""
        self.sync()
        if not self.is_sealed:
            with suppress(OSError):
                self.active.seal(self._producers(self.end))
        self.release()

    def release(self) -> None:
        self._mark.close()
        for segment in self.segments:
            segment.close()

    def _begin(self, base: int) -> None:
        path, every = segment_path(self.directory, base), self.settings.index_every
        begun = Segment(self.disk, path, base, every, Index(base, every))
        try:
            begun.make()
            self.disk.sync_directory(self.directory)
        except OSError:
            begun.close()
            raise
        if self.segments:
            self.segments[-1].limit = base
        self.active = begun
        self._synced_size, self.is_sealed = 0, False
        self.segments = (*self.segments, self.active)

    def _read_back(self, upto: int) -> list[Frame]:
        saved: list[Frame] = []
        place = self.durable
        while place < min(upto, self.end):
            for frame in self.active.read(place, 1 << 62, upto - place):
                copy = Frame.parse(bytes(frame.data), trusted=True)
                saved.append(copy)
                place = copy.next
        return saved


def gone(offset: int, first: int, place: str) -> OffsetOutOfRange:
    return OffsetOutOfRange(f"offset {offset} is no longer there", place, f"read from {first}, the oldest that is kept")


def _index_of(frames: Sequence[Frame], base: int, every: int) -> Index:
    index, position = Index(base, every), 0
    for frame in frames:
        index.add(frame.header, position)
        position += frame.bytes
    return index


def _shorter(segment: Segment, size: int, end: int) -> Index:
    index = Index(segment.base, segment.every)
    index.offsets, index.positions = segment.index.offsets[:], segment.index.positions[:]
    index.times, index.latest = segment.index.times[:], segment.index.latest
    index.cut(size, end)
    return index


def free_name(disk: Disk, path: Path, ending: str) -> Path:
    taken = set(disk.names(path.parent))
    number = 0
    while f"{path.stem}-{number}.{ending}" in taken:
        number += 1
    return path.with_name(f"{path.stem}-{number}.{ending}")

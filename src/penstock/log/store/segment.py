"""Segment: a file of frames, one after the other, from the offset in its name on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from penstock.log.errors import BadFrame
from penstock.log.frame import Frame, parse_header
from penstock.log.store.disk import Disk, File
from penstock.log.store.index import Index
from penstock.log.store.recovery import damaged, find_frame, frame_at, scan, seek

ENDING = ".log"
INDEX = ".index"


def segment_path(directory: Path, base: int) -> Path:
    return directory / f"{base:020}{ENDING}"


class Segment:
    """One writer appends; any number of readers read what has been appended."""

    def __init__(self, disk: Disk, path: Path, base: int, every: int, index: Index | None = None) -> None:
        self.disk, self.path, self.base, self.every = disk, path, base, every
        self.limit: int | None = None
        """The offset that the next segment begins with, if there is one."""
        self._index = index
        self._file: File | None = None
        self._view = memoryview(b"")
        self._appended: float | None = None

    @property
    def appended(self) -> float:
        """When something was last appended, in seconds since 1970: the file knows it when nobody here does."""
        if self._appended is None:
            self._appended = self.disk.modified(self.path)
        return self._appended

    def make(self) -> None:
        """Make its file, empty; the name lasts from the next fsync of the directory on."""
        self._file = self.disk.open(self.path, create=True)
        if self._file.size():  # of a beginning that failed
            self._file.truncate(0)

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self.disk.open(self.path)
        return self._file

    @property
    def index(self) -> Index:
        """The index from its file, or made again from the segment."""
        if self._index is None:
            self._index = self.stored_index()
            if self._index is None:
                view = self.file.map(self.file.size())
                self._index = scan(view, self.base, self.every, limit=self.limit).index
        return self._index

    @index.setter
    def index(self, index: Index) -> None:
        self._index = index

    def stored_index(self) -> Index | None:
        """What the file of the index says, unless it is missing, damaged or older than the end of the segment."""
        content = self.disk.read(self.path.with_suffix(INDEX))
        index = None if content is None else Index.parse(content, self.base)
        return None if index is None or (self.limit is not None and index.end != self.limit) else index

    @property
    def end(self) -> int:
        return self.index.end

    @property
    def size(self) -> int:
        return self.index.size

    def append(self, frames: Sequence[Frame]) -> int:
        """Write frames at the end, which is returned. After an error only bytes that nobody reads have changed."""
        index = self.index
        position = index.size
        self.file.write(position, [frame.data for frame in frames])
        self._appended = time.time()
        for frame in frames:
            index.add(frame.header, position)
            position += frame.header.length
        return index.end

    def seal(self, producers: bytes) -> None:
        """Keep the index in a file. The segment must have been fsynced."""
        self.index.producers = producers
        self.disk.replace(self.path.with_suffix(INDEX), self.index.pack())

    def read(self, offset: int, most_bytes: int, most_messages: int | None) -> list[Frame]:
        """Frames from `offset` on, at least one message."""
        view = self.view()
        position, expected = seek(view, *self.index.before(offset), offset), None
        frames: list[Frame] = []
        while position < len(view) and most_bytes > 0 and (most_messages is None or most_messages > 0):
            try:
                frame = frame_at(view, position, expected)
                if expected is None and frame.first > offset:
                    raise BadFrame(f"a frame of offset {frame.first} where {offset} should be")
            except BadFrame as error:
                if frames:
                    break
                raise damaged(self.path, view, position, offset, error.what, self.limit or self.end) from None
            position, expected = position + frame.bytes, frame.next
            if self.limit is not None and expected > self.limit:
                frame = frame.slice(0, self.limit - frame.first)
            wanted = frame.within(offset, most_bytes, most_messages)
            frames.append(wanted)
            if wanted.next != expected:
                break
            most_bytes -= wanted.bytes
            most_messages = None if most_messages is None else most_messages - wanted.count
        if not frames:
            raise damaged(self.path, view, len(view), offset, "the file ends before it", self.limit or self.end)
        return frames

    def offset_at(self, moment: int) -> int | None:
        """The first offset whose message is not before `moment`."""
        if self.index.latest < moment:
            return None
        view, position = self.view(), self.index.position_at(moment)
        while position < len(view):
            try:
                header = parse_header(view[position:])
                if header.latest >= moment:
                    frame = Frame.parse(view[position:], trusted=True)
                    return frame.first + int(np.argmax(frame.times >= moment))
                position += header.length
            except BadFrame:
                found = find_frame(view, position, self.base)
                if found is None:
                    return None
                position = found[0]
        return None

    def view(self) -> memoryview:
        """Everything that was appended, mapped into memory."""
        if len(self._view) < self.size:
            self._view = self.file.map(min(self.size, self.file.size()))
        return self._view

    def close(self) -> None:
        self._view = memoryview(b"")
        if self._file is not None:
            self._file.close()
            self._file = None

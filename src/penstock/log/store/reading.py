"""Read the files of a log from outside, without locks and changes, while another process may write them.

Only what is durable is read, so nothing is seen that could be taken back.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.log.errors import BadFrame, Damaged, OffsetOutOfRange
from penstock.log.frame import Frame, parse_header
from penstock.log.records import Ends, Topic
from penstock.log.settings import Settings
from penstock.log.store.disk import RealDisk, RealFile
from penstock.log.store.index import Index
from penstock.log.store.mark import read_mark
from penstock.log.store.opening import segments_of
from penstock.log.store.recovery import damaged, find_frame, seek
from penstock.log.store.segment import INDEX
from penstock.log.store.store import gone
from penstock.log.topics import Topics, read_topic

_DISK = RealDisk()
_TRIES = 100
_EVERY = Settings().index_every


class Piece(NamedTuple):
    """The messages of a frame at the places `start` to `stop`."""

    frame: Frame
    start: int
    stop: int

    @property
    def first(self) -> int:
        return self.frame.first + self.start


def topic_at(directory: Path, name: str) -> Topic:
    """The topic with this name of the log in a directory."""
    if not (directory / "topics").is_dir():
        raise Damaged(f"{directory} holds no log", None, "give the directory that the log was opened with")
    return read_topic(_DISK, directory / "topics", name) or Topics(_DISK, directory / "topics").find(name, 0)


class StoredPartition:
    """One partition; it remembers where frames are, so that it reads on without searching."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._known: dict[int, _Places] = {}

    @staticmethod
    def of(directory: Path, topic: str, partition: int) -> StoredPartition:
        return StoredPartition(directory / "topics" / topic / str(partition))

    def ends(self) -> Ends:
        """What can be read: `next` and `durable` are the same here."""
        durable = self._durable()
        bases = [segment.base for segment in segments_of(_DISK, self.directory, _EVERY)]
        first = min(bases, default=0)
        return Ends(first, max(first, durable), max(first, durable))

    def pieces(self, first: int, stop: int) -> Iterator[Piece]:
        """The messages from offset `first` to before `stop`, which must be durable."""
        if stop > self._durable():
            raise OffsetOutOfRange(f"offset {stop - 1} is not there yet", str(self.directory), "read what is durable")
        segments = segments_of(_DISK, self.directory, _EVERY)
        bases = [segment.base for segment in segments]
        if first < stop and (not bases or first < bases[0]):
            raise gone(first, bases[0] if bases else 0, str(self.directory))
        self._known = {base: places for base, places in self._known.items() if base in bases}
        for number in range(max(bisect_right(bases, first) - 1, 0), len(segments)):
            if first >= stop or bases[number] >= stop:
                return
            limit = segments[number].limit
            places = self._places(segments[number].path, bases[number])
            for piece in places.pieces(first, stop if limit is None else min(stop, limit), limit):
                yield piece
                first = piece.frame.first + piece.stop
        if first < stop:
            raise Damaged(f"offset {first} cannot be read: the files end before it", str(self.directory),
                          "see `penstock log check`")  # fmt: skip

    def _durable(self) -> int:
        for number in range(_TRIES):
            found = read_mark(_DISK, self.directory)
            if found is not None:
                return found
            if not number and not _DISK.names(self.directory):
                break
            time.sleep(0.001)  # it is being written
        return 0

    def _places(self, path: Path, base: int) -> _Places:
        try:
            file = RealFile(path, os.O_RDONLY)
        except FileNotFoundError:
            raise gone(base, self.ends().first, str(self.directory)) from None
        try:
            number = os.fstat(file.descriptor).st_ino
            known = self._known.get(base)
            if known is None or known.number != number:
                known = self._known[base] = _Places(path, base, number)
            known.view = file.map(file.size())
            known.check()
            return known
        finally:
            file.close()


class _Places:
    """Where offsets are in a segment: from its index file, and beyond that by going from header to header."""

    def __init__(self, path: Path, base: int, number: int) -> None:
        self.path, self.base, self.number = path, base, number
        self.view = memoryview(b"")
        content = _DISK.read(path.with_suffix(INDEX))
        self.index = (Index.parse(content, base) if content is not None else None) or Index(base, _EVERY)

    def check(self) -> None:
        """Forget what is known of another file: this one may have been made in its place."""
        index, view = self.index, self.view
        if index.positions:
            try:
                header = parse_header(view[index.positions[-1] :])
            except BadFrame:
                header = None
            if header is None or header.base != index.offsets[-1] or index.size > len(view):
                self.index = Index(self.base, _EVERY)

    def pieces(self, first: int, stop: int, end: int | None) -> Iterator[Piece]:
        self._grow(first)
        view, expected = self.view, None
        position = seek(view, *self.index.before(first), first)
        while first < stop:
            try:
                frame = Frame.parse(view[position:], trusted=True)
                if frame.first > first or (expected is not None and frame.first != expected):
                    raise BadFrame(f"a frame of offset {frame.first} where {first} should be")
            except BadFrame as error:
                raise damaged(self.path, view, position, first, error.what, end) from None
            position, expected = position + frame.bytes, frame.next
            piece = Piece(frame, first - frame.first, min(stop, frame.next) - frame.first)
            yield piece
            first = frame.first + piece.stop

    def _grow(self, offset: int) -> None:
        """Let the index reach an offset. What is damaged is for who reads it to tell."""
        index, view = self.index, self.view
        while index.end <= offset and index.size < len(view):
            position = index.size
            try:
                header = parse_header(view[position:])
            except BadFrame:
                found = find_frame(view, position, index.end)
                if found is None:
                    break
                position, header = found[0], found[1].header
            index.add(header, position)

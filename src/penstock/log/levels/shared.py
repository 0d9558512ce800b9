"""The level in shared memory: where it is, and how another process reads it while it is being overwritten."""

from __future__ import annotations

import hashlib
import mmap
import os
import tempfile
from pathlib import Path

from penstock.log.errors import BadFrame, UnknownTopic
from penstock.log.frame import Frame
from penstock.log.levels.level import (
    CAPACITY,
    ENTRIES,
    FIRST_ENTRY,
    MAGIC,
    NEXT_ENTRY,
    RING,
    VISIBLE,
    WORDS,
)

_SHARED = Path("/dev/shm") if os.path.isdir("/dev/shm") else Path(tempfile.gettempdir())
_TRIES = 100


def shared_path(directory: Path, number: int) -> Path:
    """Where the shared level of a partition is, from where its files are.

    `multiprocessing.shared_memory` would have its tracker remove it: that of a killed process, even what its successor
    made under the same name; that of a reader, when the reader ends.
    """
    place = hashlib.blake2b(str(directory.resolve()).encode(), digest_size=12).hexdigest()
    return _SHARED / f"penstock-{place}-{number}"


class SharedReader:
    """Read the shared level of a partition from another process, without asking the one that writes it."""

    def __init__(self, directory: Path, number: int) -> None:
        """`directory` is that of the partition; `number` is the level's."""
        path = shared_path(directory, number)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise UnknownTopic(f"no shared level {number} of {directory}", None,
                               "open the log in another process first, with such a level") from None  # fmt: skip
        try:
            self._map = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
        finally:
            os.close(descriptor)
        view = memoryview(self._map)
        self._words = view[: 8 * WORDS].cast("q")
        if self._words[MAGIC] != RING:
            raise BadFrame(f"{path} is no level", None, "it is being made: try again")
        self._count, self._capacity = self._words[ENTRIES], self._words[CAPACITY]
        self._directory = view[8 * WORDS : 8 * WORDS + 24 * self._count].cast("q")
        self._data = view[8 * WORDS + 24 * self._count :]

    @property
    def visible(self) -> int:
        return self._words[VISIBLE]

    def read(self, offset: int, most_bytes: int) -> list[Frame] | None:
        """The messages from `offset` on, or None if they are no longer, or not yet, here: then ask the log."""
        frames: list[Frame] = []
        while most_bytes > 0 and offset < self.visible:
            frame = self._frame(offset)
            if frame is None:
                break
            frame = frame.within(offset, most_bytes, self.visible - offset)
            frames.append(frame)
            most_bytes, offset = most_bytes - frame.bytes, frame.next
        return frames or None

    def _frame(self, offset: int) -> Frame | None:
        """The frame with this offset. A checksum says whether it was overwritten while it was copied."""
        for _ in range(_TRIES):
            number = self._find(offset)
            if number is None:
                return None
            slot = 3 * (number % self._count)
            position, length = self._directory[slot + 1] % self._capacity, self._directory[slot + 2]
            copy = bytes(self._data[position : position + max(0, min(length, self._capacity))])
            if number < self._words[FIRST_ENTRY]:
                continue
            try:
                frame = Frame.parse(copy, trusted=True)
            except BadFrame:
                continue
            if frame.first <= offset < frame.next:
                return frame
        return None

    def _find(self, offset: int) -> int | None:
        """The number of the newest entry that does not begin after `offset`."""
        low, high = self._words[FIRST_ENTRY], self._words[NEXT_ENTRY]
        if low >= high or self._directory[3 * (low % self._count)] > offset:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._directory[3 * (middle % self._count)] <= offset:
                low = middle
            else:
                high = middle
        return low

"""The level in shared memory: where it is, and how another process reads it while it is being overwritten."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import shutil
import stat
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from penstock.log.errors import BadFrame, NotAcknowledged, UnknownTopic
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
    Ring,
    ring_bytes,
)
from penstock.log.levels.mapped import MappedRing
from penstock.log.levels.memory import memory_level
from penstock.log.mapping import mapped
from penstock.log.settings import Kind, LevelSettings
from penstock.log.store.disk import Disk, RealDisk

_SHARED = Path("/dev/shm") if os.path.isdir("/dev/shm") else Path(tempfile.gettempdir())
_NOTE = "shared"
"""The file of a log that says where its shared memory is: names that could be guessed could be taken before us."""
_NAME_BYTES = 16
_TRIES = 100
_LOGGER = logging.getLogger(__name__)


class SharedMemory:
    """Where the shared levels of one log are: a directory that only its owner can enter, made when it is needed.

    `multiprocessing.shared_memory` would have its tracker remove them: those of a killed process, even what its
    successor made under the same name; those of a reader, when the reader ends.
    """

    def __init__(self, disk: Disk, log: Path) -> None:
        self._disk, self._note = disk, log / _NOTE
        self._directory: Path | None = None
        self._lock = threading.Lock()
        self._has_warned = False
        self._left_to_others = 0
        _remove(_noted(disk, self._note))  # of a process that was killed; the log's lock says that it is not alive

    def ring(self, number: int, settings: LevelSettings, next: int, partition: Path) -> Ring:
        """A level in shared memory; in ordinary memory if half of what was free is used."""
        size = ring_bytes(settings.capacity)
        try:
            with self._lock:
                if self._directory is None:
                    self._directory = self._made()
            self._check_room(size)
            return MappedRing(number, settings, next, self._directory / _file_name(partition, number))
        except (OSError, NotAcknowledged) as error:
            why = error.what if isinstance(error, NotAcknowledged) else str(error)
        if not self._has_warned:
            self._has_warned = True
            _LOGGER.warning("level %d of %s, and others after it, is in memory that is not shared: %s; other processes"
                            " cannot read it there; give %s more room, or the level less", number, partition, why,
                            _SHARED)  # fmt: skip
        return memory_level(number, replace(settings, kind=Kind.MEMORY), next)

    def close(self) -> None:
        _remove(self._directory)
        self._directory = None
        self._disk.remove(self._note)

    def _made(self) -> Path:
        name = _SHARED / f"penstock-{secrets.token_hex(_NAME_BYTES)}"
        self._disk.replace(self._note, str(name).encode())  # first, so that whatever is made can be found
        os.mkdir(name, 0o700)
        self._left_to_others = _free() // 2
        return name

    def _check_room(self, size: int) -> None:
        """Others need shared memory as well, and what is in it is taken from all."""
        free = _free()
        if free - size < self._left_to_others:
            raise OSError(errno.ENOSPC, f"{free >> 20} MiB of {_SHARED} are free, and half of it is left to others")


def _free() -> int:
    found = os.statvfs(_SHARED)
    return found.f_bavail * found.f_frsize


def _file_name(partition: Path, number: int) -> str:
    return f"{partition.parent.name}-{partition.name}-{number}"


def _noted(disk: Disk, note: Path) -> Path | None:
    """The directory that a note names, if it is one that a log has made."""
    path = Path((disk.read(note) or b"").decode("utf-8", "replace"))
    return path if path.parent == _SHARED and path.name.startswith("penstock-") else None


def _remove(directory: Path | None) -> None:
    if directory is not None and is_private(directory, os.geteuid()):
        shutil.rmtree(directory, ignore_errors=True)


def is_private(directory: Path, owner: int) -> bool:
    """Whether it is a directory, no link to one, that only this user can enter."""
    try:
        found = os.lstat(directory)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o077


class SharedReader:
    """Read the shared level of a partition from another process, without asking the one that writes it."""

    def __init__(self, directory: Path, number: int) -> None:
        """`directory` is that of the partition; `number` is the level's."""
        log = directory.parents[2]
        shared = _noted(RealDisk(), log / _NOTE)
        if shared is None or not is_private(shared, os.stat(log).st_uid):
            raise _missing(directory, number)
        path = shared / _file_name(directory, number)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise _missing(directory, number) from None
        try:
            view = mapped(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
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


def _missing(directory: Path, number: int) -> UnknownTopic:
    return UnknownTopic(f"no shared level {number} of {directory}", None,
                        "open the log in another process first, with such a level")  # fmt: skip

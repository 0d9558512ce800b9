"""A pool of open files: at most so many descriptors at a time, whatever the number of partitions.

A file that nobody uses gives its descriptor away, and is opened again when it is used. What was written to it is
fsynced before that, because the kernel reports a failed write only to those who had the file open then.

A thread that writes or fsyncs takes the file's own lock, and does not need the pool while the file is open: a tiny
message costs little more than its write. Threads that read need no lock, and are counted instead.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from penstock.log.errors import BadSettings
from penstock.log.mapping import mapped

_Result = TypeVar("_Result")
Buffers = Sequence[bytes | bytearray | memoryview]
PRIVATE = 0o600
"""Messages are nobody else's business."""
FEWEST = 64
"""Descriptors that a process needs to have a log open and to be a server."""
_MOST = 4096
_MOST_BUFFERS = 1024
_NONE_LEFT = (errno.EMFILE, errno.ENFILE)


def most_open() -> int:
    """How many files are open at a time: half of what the process may have, the others are for connections."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return _MOST
    if allowed < FEWEST:
        raise BadSettings(f"this process may open {allowed} files, and a log needs {FEWEST}", None,
                          f"allow more before it starts: ulimit -n {16 * FEWEST}")  # fmt: skip
    return min(allowed // 2, _MOST)


class OpenFiles:
    """Any number of threads use the files; `most` of them are open, and those in use beside them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._open: dict[LazyFile, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def take(self, file: LazyFile) -> int:
        """The descriptor of a file, which stays open until `give`."""
        while True:
            with self._lock:
                try:
                    if file.is_closed:
                        raise FileNotFoundError(errno.ENOENT, "it was closed", str(file.path))
                    descriptor = file.descriptor if file.descriptor >= 0 else file.reopen()
                except OSError as error:
                    if error.errno not in _NONE_LEFT or not self._open:
                        raise
                else:
                    file.users += 1
                    self._open[file] = None
                    is_crowded = len(self._open) > self.most
                    break
            if not self.close_one():  # connections may have taken the descriptors that were left for them
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(file.path))
        while is_crowded and self.close_one():
            is_crowded = len(self._open) > self.most
        return descriptor

    def open_beside(self, path: Path | str, flags: int) -> int:
        """A descriptor that is none of the pool's."""
        return self.giving_way(lambda: os.open(path, flags | os.O_CLOEXEC, PRIVATE))

    def giving_way(self, call: Callable[[], _Result]) -> _Result:
        """Do what needs a descriptor for a moment: the pool gives one away for it if the process has no more."""
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in _NONE_LEFT or not self.close_one():
                    raise

    def give(self, file: LazyFile) -> None:
        with self._lock:
            file.users -= 1
            if file.is_closed and not file.users:
                self._shut(file)

    def close(self, file: LazyFile) -> None:
        with file.turn, self._lock:
            file.is_closed = True
            if not file.users:
                self._shut(file)

    def close_one(self) -> bool:
        """Close the file that has been open for longest, rather one that need not be fsynced."""
        with self._lock:
            chosen = self._unused(unsynced=False) or self._unused(unsynced=True)
        if chosen is None:
            return False
        try:
            chosen.sync_early()
            with self._lock:
                if not chosen.users:  # nobody has begun to read it meanwhile
                    self._shut(chosen)
        finally:
            chosen.turn.release()
        return True

    def _unused(self, *, unsynced: bool) -> LazyFile | None:
        """A file with its turn, which has to be given back."""
        # Not waited for: who has the turn may be waiting for the lock of the pool.
        return next((file for file in self._open if file.is_unsynced == unsynced and not file.users
                     and file.turn.acquire(blocking=False)), None)  # fmt: skip

    def _shut(self, file: LazyFile) -> None:
        self._open.pop(file, None)
        if file.descriptor >= 0:
            os.close(file.descriptor)
            file.descriptor = -1


class LazyFile:
    """A file that is open while it is used, and for as long afterwards as there is room for it.

    One that is not `lasting` is never fsynced.
    """

    def __init__(self, pool: OpenFiles, path: Path, *, create: bool, lasting: bool) -> None:
        self.path, self._pool, self._lasting = path, pool, lasting
        self.descriptor, self.users = -1, 0
        self.is_unsynced = self.is_closed = False
        self._failed: OSError | None = None
        self.turn = threading.Lock()
        """Of who writes, fsyncs or closes.

        The kernel tells one of two who fsync at once that a write failed: the other one would believe it is safe.
        """
        self._flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self._inode: tuple[int, int] | None = None
        with self.turn:
            self._open()

    def reopen(self) -> int:
        """Open it, if it is still the same file. Only for the pool."""
        descriptor = os.open(self.path, self._flags, PRIVATE)
        found = os.fstat(descriptor)
        if self._inode not in (None, (found.st_dev, found.st_ino)):
            os.close(descriptor)
            raise FileNotFoundError(errno.ENOENT, "another file has its name now", str(self.path))
        self._inode, self._flags, self.descriptor = (found.st_dev, found.st_ino), self._flags & ~os.O_CREAT, descriptor
        return descriptor

    def sync_early(self) -> None:
        """Fsync before it is closed; a failure is told to who asks for the next one. For who has the turn."""
        if self.is_unsynced:
            self.is_unsynced = False
            try:
                os.fdatasync(self.descriptor)
            except OSError as error:
                self._failed = error

    def write(self, position: int, buffers: Buffers) -> None:
        with self.turn:
            if self.descriptor < 0 or self.is_closed:
                self._open()
            try:
                write_at(self.descriptor, self.path, position, buffers)
            finally:
                self.is_unsynced = self._lasting

    def sync(self) -> None:
        with self.turn:
            if self._failed is not None:
                error, self._failed = self._failed, None
                raise error
            if self.descriptor < 0 or self.is_closed:
                self._open()
            self.is_unsynced = False
            os.fdatasync(self.descriptor)

    def size(self) -> int:
        descriptor = self._pool.take(self)
        try:
            return os.fstat(descriptor).st_size
        finally:
            self._pool.give(self)

    def truncate(self, size: int) -> None:
        with self.turn:
            if self.descriptor < 0 or self.is_closed:
                self._open()
            try:
                os.ftruncate(self.descriptor, size)
            finally:
                self.is_unsynced = self._lasting

    def map(self, size: int) -> memoryview:
        descriptor = self._pool.take(self)
        try:
            return mapped(descriptor, size)
        finally:
            self._pool.give(self)

    def close(self) -> None:
        self._pool.close(self)

    def _open(self) -> None:
        """For who has the turn: it stays open until that is given back."""
        self._pool.take(self)
        self._pool.give(self)


def write_at(descriptor: int, path: Path, position: int, buffers: Buffers) -> None:
    if len(buffers) <= _MOST_BUFFERS:
        size = sum([memoryview(buffer).nbytes for buffer in buffers])
        if os.pwritev(descriptor, buffers, position) == size:
            return  # as a rule; if not, what was written is written again
    left = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
    while left:
        done = os.pwritev(descriptor, left[:_MOST_BUFFERS], position)
        if done == 0:
            raise OSError(errno.EIO, "nothing was written", str(path))
        position += done
        while left and done >= len(left[0]):
            done -= len(left.pop(0))
        if done:
            left[0] = left[0][done:]

"""Disk: the only way to the file system. Tests put another one in its place, which loses, tears and refuses."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from penstock.log.errors import LogInUse

Buffers = Sequence[bytes | bytearray | memoryview]
_MOST_BUFFERS = 1024


class File(Protocol):
    def write(self, position: int, buffers: Buffers) -> None:
        """All of it or an OSError; then any part of it may be there."""

    def sync(self) -> None: ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def map(self, size: int) -> memoryview:
        """The first `size` bytes, to read. They stay readable when the file is removed."""

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: Path, *, create: bool = False) -> File: ...

    def read(self, path: Path) -> bytes | None:
        """The content of a small file, or None if there is no such file."""

    def replace(self, path: Path, content: bytes) -> None:
        """The file is there with all of the new content, or as it was, and stays so."""

    def names(self, directory: Path) -> list[str]: ...

    def make_directory(self, path: Path) -> None: ...

    def sync_directory(self, path: Path) -> None: ...

    def remove(self, path: Path) -> None: ...

    def rename(self, path: Path, other: Path) -> None:
        """The file has the other name, and whatever had that is gone, for good; or nothing has changed."""

    def link(self, path: Path, other: Path) -> None:
        """The file has the other name as well."""

    def lock(self, path: Path) -> File: ...


class RealFile:
    def __init__(self, path: Path, flags: int) -> None:
        self.path = path
        self.descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def write(self, position: int, buffers: Buffers) -> None:
        left = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
        while left:
            done = os.pwritev(self.descriptor, left[:_MOST_BUFFERS], position)
            if done == 0:
                raise OSError(errno.EIO, "nothing was written", str(self.path))
            position += done
            while left and done >= len(left[0]):
                done -= len(left.pop(0))
            if done:
                left[0] = left[0][done:]

    def sync(self) -> None:
        os.fdatasync(self.descriptor)

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self.descriptor, size)

    def map(self, size: int) -> memoryview:
        if size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(self.descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ))

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class RealDisk:
    def open(self, path: Path, *, create: bool = False) -> File:
        return RealFile(path, os.O_RDWR | (os.O_CREAT if create else 0))

    def read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def replace(self, path: Path, content: bytes) -> None:
        temporary = path.with_name(path.name + ".new")
        file = RealFile(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            file.write(0, [content])
            file.sync()
        finally:
            file.close()
        os.replace(temporary, path)
        self.sync_directory(path.parent)

    def names(self, directory: Path) -> list[str]:
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []

    def make_directory(self, path: Path) -> None:
        if path.is_dir():
            return
        if not path.parent.is_dir():
            self.make_directory(path.parent)
        with suppress(FileExistsError):
            os.mkdir(path)
        self.sync_directory(path.parent)

    def sync_directory(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            os.remove(path)

    def rename(self, path: Path, other: Path) -> None:
        os.rename(path, other)
        self.sync_directory(path.parent)

    def link(self, path: Path, other: Path) -> None:
        os.link(path, other)

    def lock(self, path: Path) -> File:
        file = RealFile(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(file.descriptor, 32, 0).decode("ascii", "replace").strip()
            file.close()
            raise LogInUse(f"process {owner or 'unknown'} has the log of {path.parent} open", None,
                           "stop it, or reach the log through its server") from None  # fmt: skip
        os.ftruncate(file.descriptor, 0)
        os.pwrite(file.descriptor, f"{os.getpid()}\n".encode(), 0)
        return file

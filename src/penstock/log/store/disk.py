"""Disk: the only way to the file system. Tests put another one in its place, which loses, tears and refuses."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Protocol

from penstock.log.errors import LogInUse
from penstock.log.mapping import mapped
from penstock.log.store.openfiles import PRIVATE, Buffers, LazyFile, OpenFiles, most_open, write_at

PRIVATE_DIRECTORY = 0o700
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


class File(Protocol):
    def write(self, position: int, buffers: Buffers) -> None:
        """Write all of it, or raise OSError; then any part of it may be there."""

    def sync(self) -> None: ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def map(self, size: int) -> memoryview:
        """The first `size` bytes, to read. They stay readable when the file is removed."""

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: Path, *, create: bool = False, lasting: bool = True) -> File:
        """A file to read and write; one that is not `lasting` is never fsynced."""

    def read(self, path: Path) -> bytes | None:
        """The content of a small file, or None if there is no such file."""

    def replace(self, path: Path, content: bytes) -> None:
        """The file is there with all of the new content, or as it was, and stays so."""

    def names(self, directory: Path) -> list[str]: ...

    def make_directory(self, path: Path) -> None: ...

    def make_directories(self, parent: Path, names: Iterable[str]) -> None:
        """Many at once in one that is there, which costs less than one after the other."""

    def make_private(self, directory: Path) -> None:
        """Only its owner may read a log, also one in a directory that was there before."""

    def sync_directory(self, path: Path) -> None: ...

    def remove(self, path: Path) -> None: ...

    def modified(self, path: Path) -> float:
        """When a file was last written to, in seconds since 1970."""

    def remove_directory(self, path: Path) -> None:
        """With all that is in it."""

    def rename(self, path: Path, other: Path) -> None:
        """The file or directory has the other name, and whatever had that is gone, for good.

        After an OSError it may have either name, until the next power loss.
        """

    def link(self, path: Path, other: Path) -> None:
        """The file has the other name as well."""

    def lock(self, path: Path) -> File: ...


class RealFile:
    """A file that is open until it is closed."""

    def __init__(self, path: Path, flags: int) -> None:
        self.path = path
        self.descriptor = open_files().open_beside(path, flags)

    def write(self, position: int, buffers: Buffers) -> None:
        write_at(self.descriptor, self.path, position, buffers)

    def sync(self) -> None:
        os.fdatasync(self.descriptor)

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self.descriptor, size)

    def map(self, size: int) -> memoryview:
        return mapped(self.descriptor, size)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


@cache
def open_files() -> OpenFiles:
    """The pool of open files for all logs of this process, which has one limit for them."""
    return OpenFiles(most_open())


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = open_files().open_beside(directory, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class RealDisk:
    def open(self, path: Path, *, create: bool = False, lasting: bool = True) -> File:
        return LazyFile(open_files(), path, create=create, lasting=lasting)

    def read(self, path: Path) -> bytes | None:
        try:
            with open(path, "rb", opener=open_files().open_beside) as file:
                return file.read()
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
            return sorted(open_files().giving_way(lambda: os.listdir(directory)))
        except FileNotFoundError:
            return []

    def make_directory(self, path: Path) -> None:
        if path.is_dir():
            return
        if not path.parent.is_dir():
            self.make_directory(path.parent)
        self.make_directories(path.parent, [path.name])

    def make_directories(self, parent: Path, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(parent / name, PRIVATE_DIRECTORY)
        self.sync_directory(parent)

    def make_private(self, directory: Path) -> None:
        if not os.stat(directory).st_mode & ~PRIVATE_DIRECTORY & 0o777:
            return
        with suppress(PermissionError):  # another user's: who may write here only
            os.chmod(directory, PRIVATE_DIRECTORY)  # first: it hides all the others
            for name in self.names(directory):
                if name == "topics":
                    for place, _, files in os.walk(directory / name):
                        os.chmod(place, PRIVATE_DIRECTORY)
                        for file in files:
                            os.chmod(os.path.join(place, file), PRIVATE)
                elif name == "lock" or ".journal" in name or name.endswith(".torn"):
                    os.chmod(directory / name, PRIVATE)

    def sync_directory(self, path: Path) -> None:
        with _opened(path) as descriptor:
            os.fsync(descriptor)

    def remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            os.remove(path)

    def modified(self, path: Path) -> float:
        return os.stat(path).st_mtime

    def remove_directory(self, path: Path) -> None:
        shutil.rmtree(path)
        self.sync_directory(path.parent)

    def rename(self, path: Path, other: Path) -> None:
        with _opened(path.parent) as descriptor:  # first: what cannot be fsynced is not renamed
            os.rename(path, other)
            os.fsync(descriptor)

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

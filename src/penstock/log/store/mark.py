"""Mark: the offset up to which a partition is durable, in a small file, for processes that only read.

It is written after the fsync and never fsynced itself: what it says may be old, but is always true.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import xxhash

from penstock.log.store.disk import Disk, File

NAME = "durable"
_MARK = struct.Struct("<qQ")


class Mark:
    """The mark of a partition; one process writes it."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk, self._path = disk, directory / NAME
        self._file: File | None = None

    def set(self, offset: int) -> None:
        """A disk that refuses this loses nothing: readers from outside wait until it takes the next one."""
        with suppress(OSError):
            if self._file is None:
                self._file = self._disk.open(self._path, create=True, lasting=False)
            self._file.write(0, [_packed(offset)])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_mark(disk: Disk, directory: Path) -> int | None:
    """The offset that the mark names; None if there is no mark, or it is being written."""
    content = disk.read(directory / NAME)
    if content is None or len(content) != _MARK.size:
        return None
    offset: int = _MARK.unpack(content)[0]
    return offset if offset >= 0 and content == _packed(offset) else None


def _packed(offset: int) -> bytes:
    return _MARK.pack(offset, xxhash.xxh3_64_intdigest(offset.to_bytes(8, "little")))

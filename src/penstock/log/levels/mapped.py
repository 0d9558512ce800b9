"""The level in a mapped file: larger than memory if need be, and gone when the log is opened again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from penstock.log.errors import NotAcknowledged
from penstock.log.levels.level import Ring, ring_bytes
from penstock.log.mapping import mapped
from penstock.log.settings import LevelSettings


class MappedRing(Ring):
    def __init__(self, number: int, settings: LevelSettings, next: int, path: Path) -> None:
        self._path, size = path, ring_bytes(settings.capacity)
        try:
            view = _mapped(path, size)
        except OSError as error:
            raise NotAcknowledged(f"no {size} bytes for level {number} ({settings.kind.value}): {error}", str(path),
                                  "make the level smaller or leave it out, or make space there") from None  # fmt: skip
        super().__init__(number, settings, view, next)

    def close(self) -> None:
        super().close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _mapped(path: Path, size: int) -> memoryview:
    with suppress(FileNotFoundError):  # of a process that was killed; the log's lock says that it is not alive
        os.unlink(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # Space that is only promised would end the process when it is touched and is not there.
        os.posix_fallocate(descriptor, 0, size)
        return mapped(descriptor, size, writable=True)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)

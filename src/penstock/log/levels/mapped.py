"""The level in a mapped file: larger than memory if need be, and gone when the log is opened again."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

from penstock.log.errors import BadSettings
from penstock.log.levels.level import Ring, ring_bytes
from penstock.log.settings import LevelSettings


class MappedRing(Ring):
    def __init__(self, number: int, settings: LevelSettings, next: int, directory: Path) -> None:
        self._path, size = directory / f"level-{number}.ring", ring_bytes(settings.capacity)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:  # a disk that is full later would end the process
            os.posix_fallocate(descriptor, 0, size)
            self._map = mmap.mmap(descriptor, size)
        except OSError as error:
            raise BadSettings(f"no {size} bytes for level {number}: {error}", str(self._path),
                              "make the level smaller or leave it out, or make space") from None  # fmt: skip
        finally:
            os.close(descriptor)
        super().__init__(number, settings, memoryview(self._map), next)

    def close(self) -> None:
        super().close()
        self._map.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)

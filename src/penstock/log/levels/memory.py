"""The level in the memory of this process."""

from __future__ import annotations

import mmap

from penstock.log.levels.level import Ring, ring_bytes
from penstock.log.settings import LevelSettings


def memory_level(number: int, settings: LevelSettings, next: int) -> Ring:
    """Memory that is taken as it is filled: most partitions of a log may have few messages."""
    pages = mmap.mmap(-1, ring_bytes(settings.capacity), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return Ring(number, settings, memoryview(pages), next)

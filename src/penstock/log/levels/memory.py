"""The level in the memory of this process."""

from __future__ import annotations

from penstock.log.levels.level import Ring, ring_bytes
from penstock.log.settings import LevelSettings


def memory_level(number: int, settings: LevelSettings, next: int) -> Ring:
    return Ring(number, settings, memoryview(bytearray(ring_bytes(settings.capacity))), next)

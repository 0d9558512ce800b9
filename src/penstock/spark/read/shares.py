"""Which chunks of files a task reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

SHARE_BYTES = 64 * 1024 * 1024
"""What a task reads, about: less if that keeps cores busy that would have nothing to do at the end."""

One = TypeVar("One")


def shares(chunks: Sequence[One], size: Callable[[One], int], cores: int) -> list[list[One]]:
    """Neighbours together, as much for each task, and as many tasks as let all cores end at the same time."""
    total = sum(map(size, chunks))
    rounds = max(1, -(-total // (SHARE_BYTES * cores)))
    found: list[list[One]] = [[] for _ in range(min(cores * rounds, len(chunks)))]
    before = 0
    for chunk in chunks:
        found[min(before * len(found) // max(total, 1), len(found) - 1)].append(chunk)
        before += size(chunk)
    return [share for share in found if share]

"""Divide the pieces of all sources among tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

SHARE_BYTES = 64 * 1024 * 1024
"""About how many bytes a task reads; less where cores would have nothing to do at the end."""

One = TypeVar("One")


def _size(piece: Any) -> int:
    return int(piece.size)


def shares(pieces: Sequence[One], cores: int, size: Callable[[One], int] = _size) -> list[list[One]]:
    """Give each task neighbouring pieces of about the same size, with so many tasks that all cores end together."""
    total = sum(map(size, pieces))
    rounds = max(1, -(-total // (SHARE_BYTES * cores)))
    found: list[list[One]] = [[] for _ in range(min(cores * rounds, len(pieces)))]
    before = 0
    for piece in pieces:
        found[min(before * len(found) // max(total, 1), len(found) - 1)].append(piece)
        before += size(piece)
    return [share for share in found if share]

"""What messages are promised when something fails: four levels, each of which includes those before it."""

from __future__ import annotations

BEST_EFFORT = "best effort"
AT_LEAST_ONCE = "at least once"
EXACTLY_ONCE = "exactly once"
IN_ORDER = "exactly once in order"
LEVELS = (BEST_EFFORT, AT_LEAST_ONCE, EXACTLY_ONCE, IN_ORDER)


def includes(given: str, asked: str) -> bool:
    """Whether the given promise is the one asked for, or more."""
    return LEVELS.index(given) >= LEVELS.index(asked)


def weakest(*levels: str) -> str:
    return min(levels, key=LEVELS.index)

"""Retention: the oldest segments go when there are too many bytes, or when all their messages are too old."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.log.settings import Retention
from penstock.log.store.segment import Segment

if TYPE_CHECKING:
    from penstock.log.store.store import Store


def enforce(store: Store, retention: Retention, now: float | None = None) -> int:
    """Remove what need not be kept; the number of segments that went. The last segment goes only if it is too old."""
    if retention.age is not None and _is_old(store.active, retention.age, now) and store.active.size:
        store.roll()
    excess = 0 if retention.bytes is None else store.size - retention.bytes
    dropped = 0
    for segment in store.segments[:-1]:
        too_many = excess > 0
        if not too_many and not (retention.age is not None and _is_old(segment, retention.age, now)):
            break
        excess -= segment.size
        dropped += 1
    if dropped:
        store.drop_before(dropped)
    return dropped


def retain_every(retention: Retention) -> float | None:
    """How often to look, in seconds."""
    return None if retention.age is None else min(max(retention.age / 10, 0.05), 60.0)


def _is_old(segment: Segment, age: float, now: float | None) -> bool:
    return segment.index.latest < ((time.time() if now is None else now) - age) * 1e6

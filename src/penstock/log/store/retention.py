"""Retention: the oldest segments go when there are too many bytes, or when nothing in them is young enough."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.log.settings import Retention
from penstock.log.store.segment import Segment

if TYPE_CHECKING:
    from penstock.log.store.store import Store


def enforce(store: Store, retention: Retention) -> None:
    """Remove what need not be kept. The last segment goes only if it is too old."""
    if retention.bytes is None and retention.age is None:
        return
    if store.active.size and _is_old(store.active, retention):
        store.roll()
    excess = 0 if retention.bytes is None else store.size - retention.bytes
    dropped = 0
    for segment in store.segments[:-1]:
        if excess <= 0 and not _is_old(segment, retention):
            break
        excess -= segment.size
        dropped += 1
    if dropped:
        store.drop_before(dropped)


def retain_every(retention: Retention) -> float | None:
    """How often to look, in seconds."""
    return None if retention.age is None else min(max(retention.age / 10, 0.05), 60.0)


def _is_old(segment: Segment, retention: Retention) -> bool:
    if retention.age is None:
        return False
    newest = segment.index.latest / 1e6 if retention.by_message_time else segment.appended
    return newest < time.time() - retention.age

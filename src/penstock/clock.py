"""The time of the batch that is being computed: one for all its messages, whatever computes them, and for every try.

Whoever runs a batch begins it here; `now()` in an expression reads it.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime, timedelta

from penstock.message import EPOCH

_BATCH: ContextVar[datetime] = ContextVar("batch", default=EPOCH)


def begin_batch(micros: int) -> None:
    """A batch at so many microseconds since 1970."""
    _BATCH.set(EPOCH + timedelta(microseconds=micros))


def now() -> datetime:
    return _BATCH.get()

"""The clock of the batch that is being computed: one time for all its messages, in every task and every try.

Whoever runs a batch sets it; `now()` in an expression reads it.
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

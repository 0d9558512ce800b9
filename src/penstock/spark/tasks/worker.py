"""Tune the Python workers of Spark for blocks of messages."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_PIECE, _KEPT = 32 << 20, 512 << 20
"""The largest piece of freed memory that a worker keeps, and how many bytes it keeps in all."""


@cache
def tune_worker() -> None:
    """Tune garbage collection and memory of this worker, once per process.

    Spark collects garbage after every task; objects that are loaded by now are many, live on, and need not be looked
    at. Memory that one block frees is kept for the next: to get it from the system again costs as much as to decode a
    field.
    """
    gc.freeze()
    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, _KEPT_PIECE)
        allocator.mallopt(_M_TRIM_THRESHOLD, _KEPT)

"""Python's workers on Spark, made ready for blocks of messages."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_PIECE, _KEPT = 32 << 20, 512 << 20
"""A worker keeps so many free bytes, in pieces of up to so many."""


@cache
def settle() -> None:
    """Make this worker ready for many blocks of messages: once per process.

    Spark collects garbage after every task; what a worker has loaded by now is none, and there is a lot of it. The
    memory of one block is to serve the next: to get it from the kernel again costs as much as to decode a field.
    """
    gc.freeze()
    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, _KEPT_PIECE)
        allocator.mallopt(_M_TRIM_THRESHOLD, _KEPT)

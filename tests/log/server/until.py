"""Waiting for something that a test cannot be told about."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(is_true: Callable[[], object], seconds: float = 10.0) -> None:
    """Until it is true. Never shorter: what does not come to be is a failure."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not true after {seconds:g} seconds"
        time.sleep(0.002)

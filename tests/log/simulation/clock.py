"""A clock that the story moves: time that only goes on, and a wall clock that also jumps, ahead and back."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest


class Clock:
    """In the place of the module `time`, for the thread that made it; for others, and for all else, that is itself."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self.begin()

    def begin(self) -> None:
        self.running = 1000.0
        self.walls = [1.8e9]
        """What the wall clock has shown; the last is now."""

    def rule(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All of the log and its disk that asks for the time asks this clock from now on."""
        for name, module in list(sys.modules.items()):
            if name.startswith(("penstock.log.", "tests.log.simulated")) and getattr(module, "time", None) is time:
                monkeypatch.setattr(module, "time", self)

    def go(self, seconds: float) -> None:
        self.running += seconds
        self.jump(seconds)

    def jump(self, seconds: float) -> None:
        """Somebody sets the wall clock."""
        self.walls.append(self.walls[-1] + seconds)

    def span(self, since: int) -> float:
        """How old something can seem to be that was made when there were `since` times in `walls`."""
        walls = self.walls[since - 1 :]
        return max(walls) - min(walls)

    # ---- what `time` has

    def monotonic(self) -> float:
        return self.running if threading.get_ident() == self._thread else time.monotonic()

    def monotonic_ns(self) -> int:
        return int(self.monotonic() * 1e9)

    def time(self) -> float:
        return self.walls[-1] if threading.get_ident() == self._thread else time.time()

    def time_ns(self) -> int:
        return int(self.time() * 1e6) * 1000

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

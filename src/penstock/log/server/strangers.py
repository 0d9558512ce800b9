"""Connections that have not said hello yet, or not shown the token: they get few places and little time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable


class Strangers:
    """Connections that have not said hello; they have few places of their own and little time. For any thread.

    One more than there are places takes that of the one who has been here longest: who means to say something has said
    it by then, so that silent connections, however many, keep nobody out.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._ends: dict[Hashable, tuple[float, Callable[[], None]]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, who: Hashable) -> bool:
        return who in self._ends

    def enter(self, who: Hashable, end: Callable[[], None]) -> None:
        with self._lock:
            self._ends[who] = time.monotonic(), end
            one_more = len(self._ends) > self.most
        if one_more:
            self._end_oldest()

    def leave(self, who: Hashable) -> bool:
        """The connection is known now, or gone; False if it was ended before."""
        with self._lock:
            return self._ends.pop(who, None) is not None

    def end_late(self) -> None:
        """End connections whose time is over; to be called now and then."""
        while self._end_oldest(time.monotonic() - self.seconds):
            pass

    def _end_oldest(self, before: float | None = None) -> bool:
        with self._lock:
            who = next(iter(self._ends), None)
            if who is None or (before is not None and self._ends[who][0] > before):
                return False
            _, end = self._ends.pop(who)
        end()
        return True

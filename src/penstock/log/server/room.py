"""Bound the bytes that the server keeps in memory for all clients together."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class Room:
    """Counts the bytes kept for clients; when there are too many, the client that has had some longest is ended.

    In the event loop only. `end` must see to it that `free` is called for the client that is ended.
    """

    def __init__(self, most: int) -> None:
        self.most, self.kept = most, 0
        self._keepers: dict[Hashable, tuple[int, Callable[[], None]]] = {}

    @property
    def is_crowded(self) -> bool:
        """Time to be careful."""
        return self.kept > self.most // 2

    def keep(self, who: Hashable, size: int, end: Callable[[], None]) -> None:
        """Note how many bytes are kept for a client now; its place in the order does not change."""
        before, _ = self._keepers.get(who, (0, end))
        self._keepers[who] = size, end
        self.kept += size - before
        while self.kept > self.most and self._keepers:
            oldest = next(iter(self._keepers))
            _, end_oldest = self._keepers[oldest]
            self.free(oldest)
            end_oldest()

    def free(self, who: Hashable) -> None:
        size, _ = self._keepers.pop(who, (0, None))
        self.kept -= size

"""What clients make the server keep: bounded for all of them together, whatever each of them does."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class Room:
    """Bytes that are kept for clients. When there are too many, who has kept some for longest is ended.

    In the event loop only. `end` must see to it that `free` is called for who is ended.
    """

    def __init__(self, most: int) -> None:
        self.most, self.kept = most, 0
        self._keepers: dict[Hashable, tuple[int, Callable[[], None]]] = {}

    @property
    def is_crowded(self) -> bool:
        """Time to be careful."""
        return self.kept > self.most // 2

    def keep(self, who: Hashable, size: int, end: Callable[[], None]) -> None:
        """So much is kept for them now; they stay where they are in the order."""
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

"""Group commit: one thread writes and fsyncs for all who wait, one write and one fsync per partition and round."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Committed(Protocol):
    """What the committing thread does for a partition; none of it raises."""

    def write_pending(self) -> int:
        """Write what waits; the number of pushes that this acknowledged."""

    def sync_pending(self, *, due: bool) -> int:
        """Fsync, if somebody waits for it or it is due."""

    def retain(self) -> None:
        """Remove what need not be kept."""

    @property
    def lags_since(self) -> float | None:
        """When the oldest message that is not fsynced came (monotonic), if there is one."""


class Committer:
    """`retain_every` is in seconds: how often it looks for what has become too old."""

    def __init__(self, flush_after: float, retain_every: float | None = None) -> None:
        self._flush_after, self._retain_every = flush_after, retain_every
        self._retained = time.monotonic()
        self.watched: list[Committed] = []
        self._condition = threading.Condition()
        self._asked: dict[Committed, None] = {}
        self._lagging: dict[Committed, None] = {}
        self._stopping = False
        self.rounds = self.pushes = 0
        self._thread = threading.Thread(target=self._run, name="penstock-log-commit", daemon=True)
        self._thread.start()

    def ask(self, partition: Committed) -> None:
        """Commit this partition in the next round."""
        with self._condition:
            self._asked[partition] = None
            self._condition.notify()

    def later(self, partition: Committed) -> None:
        """Commit this partition when it is due."""
        if partition not in self._lagging:
            with self._condition:
                self._lagging[partition] = None
                self._condition.notify()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            self.turn(wait=True)

    def turn(self, *, wait: bool = False) -> None:
        """Commit those that asked or are due, and remove what has become too old if it is time to look for that."""
        with self._condition:
            while wait and not (self._asked or self._stopping or self._due() or self._must_retain()):
                self._condition.wait(self._flush_after / 4 if self._lagging else self._retain_every)
            if wait and self._stopping:
                return
            asked, self._asked = list(self._asked), {}
            due = self._due()
            for partition in due:
                del self._lagging[partition]
        self._round(asked, due)
        if self._must_retain():
            self._retained = time.monotonic()
            for partition in tuple(self.watched):
                partition.retain()

    def _must_retain(self) -> bool:
        return self._retain_every is not None and time.monotonic() - self._retained >= self._retain_every

    def _due(self) -> list[Committed]:
        now = time.monotonic()
        return [partition for partition in self._lagging
                if (since := partition.lags_since) is None or now - since >= self._flush_after]  # fmt: skip

    def _round(self, asked: list[Committed], due: list[Committed]) -> None:
        both = list(dict.fromkeys((*asked, *due)))
        for partition in both:
            self.pushes += partition.write_pending()
        for partition in both:
            self.pushes += partition.sync_pending(due=partition in due)
            if partition.lags_since is not None:
                self.later(partition)
        self.rounds += 1

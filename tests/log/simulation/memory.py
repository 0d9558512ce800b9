"""Whom a partition has to remember, found out the slow and obvious way: from all that was ever written into it."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.log.frame import NOBODY, Run
from penstock.log.partition import Partition


class Memory:
    """Also what is taken back was written: who was forgotten for it was, until then."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        """Without it, nobody is ever forgotten."""
        self.written: list[tuple[int, int]] = []
        """By offset: the producer, and how many writes there had been. What is taken back may be there after a kill."""
        self.end = 0
        self.forgotten: dict[int, list[int]] = {}
        """By producer: after how many writes it was not among the last ones."""
        self.writes = 0

    def watch(self, partition: Partition) -> None:
        """That of a log which was opened just now."""
        if self.most is None:
            return
        self._find(partition)
        producers = partition.producers
        add, undo = producers.add, producers.undo

        def added(runs: Sequence[Run], offset: int) -> None:
            self.add(runs, offset)
            add(runs, offset)

        def undone(offset: int) -> None:
            self.end = min(self.end, offset)
            undo(offset)

        producers.add, producers.undo = added, undone  # type: ignore[method-assign]

    def _find(self, partition: Partition) -> None:
        """Also what was taken back is there again, if that did not come to the disk."""
        offset = partition.store.first
        self.written += [(NOBODY, 0)] * (partition.next - len(self.written))
        while offset < partition.next:
            for frame in partition.read(offset, 1 << 20, None).frames:
                for run in frame.runs:
                    for place in range(offset, offset + run.messages):
                        if self.written[place][0] != run.producer:
                            self.written[place] = run.producer, 0
                    offset += run.messages
        self.end = partition.next

    def add(self, runs: Sequence[Run], offset: int) -> None:
        self._fill(offset, NOBODY)
        for run in runs:
            self.writes += 1
            self._fill(self.end + run.messages, run.producer)
        last: set[int] = set()
        assert self.most is not None
        for place in range(self.end - 1, -1, -1):
            last.add(self.written[place][0])
            if len(last - {NOBODY}) > self.most:
                self.forgotten.setdefault(self.written[place][0], []).append(self.writes)
                return

    def _fill(self, end: int, producer: int) -> None:
        if end > self.end:
            self.written[self.end : end] = [(producer, self.writes)] * (end - self.end)
            self.end = end

    def may_repeat(self, offset: int, again: int) -> bool:
        """Whether a message may be there twice: its producer was not remembered when it pushed this again.

        Or it was not when it asked, and so went on as somebody new, even if what it was forgotten for was taken back.
        """
        if self.most is None:
            return False
        producer, write = self.written[offset]
        if self.written[again][0] != producer:
            return any(write < moment < self.written[again][1] for moment in self.forgotten.get(producer, ()))
        others: set[int] = set()
        for other, _ in self.written[offset:again]:
            others = set() if other == producer else others | ({other} - {NOBODY})
            if len(others) >= self.most:
                return True
        return False

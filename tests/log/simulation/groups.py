"""Groups that read and commit."""

from __future__ import annotations

import random

from penstock.log.log import Log


class Group:
    """Readers that begin, after every end of the log, where they have committed."""

    def __init__(self, partition: int) -> None:
        self.partition, self.offset = partition, 0
        self.seen: set[tuple[int, bytes]] = set()

    def step(self, log: Log, chance: random.Random) -> None:
        self.offset = max(self.offset, log.ends("t", self.partition).first)
        reading = log.read("t", self.partition, self.offset, most_bytes=chance.choice((1, 400, 5000)))
        for frame in reading.frames:
            self.seen.update(zip(frame.offsets.tolist(), frame.values.to_pylist(), strict=True))
        self.offset = reading.next
        if chance.random() < 0.5:
            log.commit("g", "t", self.partition, self.offset)

    def begin(self, log: Log) -> None:
        self.offset = log.committed("g", "t", self.partition) or 0

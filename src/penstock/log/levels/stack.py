"""Stack: the levels of a partition, from the fastest to the durable one."""

from __future__ import annotations

from pathlib import Path

from penstock.log.frame import Frame, Header
from penstock.log.levels.level import Ring, joined_bytes
from penstock.log.levels.mapped import MappedRing
from penstock.log.levels.memory import memory_level
from penstock.log.levels.shared import SharedMemory
from penstock.log.settings import Kind, LevelSettings, Settings

STORE = 0
"""The number of the durable level in answers."""
_MOST_ASIDE = 16 << 20


class Stack:
    """The levels of a partition, for one thread at a time; only `read_store` may be called by any."""

    def __init__(self, settings: Settings, directory: Path, shared: SharedMemory | None) -> None:
        self._settings, self._directory, self._shared = settings, directory, shared
        self.levels: tuple[Ring, ...] = ()
        self._aside: list[Frame] = []
        """Frames that no level can hold, on their way to the store."""
        self._aside_bytes = 0
        self._built = False

    def fits(self, *headers: Header) -> bool:
        """Whether such frames can be taken before something is stored."""
        waiting, size = self.unstored, sum(map(joined_bytes, headers))
        return not waiting or waiting + size <= (self.levels[-1].largest if self.levels else _MOST_ASIDE)

    @property
    def unstored(self) -> int:
        """The bytes that the store may have to take, at most."""
        return sum([level.needed for level in self.levels]) + self._aside_bytes

    @property
    def wants_storing(self) -> bool:
        """Whether there is a batch for the store."""
        return bool(self._aside) or (bool(self.levels) and self.levels[-1].waiting >= self.levels[-1].settings.batch)

    def write(self, frame: Frame) -> bool:
        """Put a frame into the first level. False if no level can hold it: then only the store will have it."""
        if not self._built:
            self.build(frame.first)
        for place, level in enumerate(self.levels):
            if joined_bytes(frame.header) <= level.largest:
                self._put(place, frame)
                self._cascade(all=False)
                return True
            self._transfer(place, all=True)
            level.skip_to(frame.next)
        self._aside.append(frame)
        self._aside_bytes += frame.bytes
        return False

    def pending(self, after: int = 0) -> list[Frame]:
        """Everything that the store does not have, in batches, which stay in their levels until `stored`."""
        self._cascade(all=True)
        aside = [frame for frame in self._aside if frame.next > after]
        return [*aside, *(self.levels[-1].transfer(all=True, after=after) if self.levels else ())]

    def stored(self, upto: int, batches: list[Frame]) -> None:
        self._keep_aside([frame for frame in self._aside if frame.first >= upto])
        if self.levels:
            self.levels[-1].transferred_to(upto, batches)

    def read(self, offset: int, most_bytes: int, most_messages: int) -> tuple[list[Frame], int] | None:
        """The messages from `offset` on and the level that has the first; None if that is the store."""
        for level in self.levels:
            frames = level.read(offset, most_bytes, most_messages)
            if frames:
                level.counters.hits += 1
                return self._continued(frames, most_bytes, most_messages), level.number
            level.counters.misses += 1  # forwarded
        return None

    def held(self, next: int) -> int:
        """The offset from which on messages are in memory: `next` if none is."""
        return min([level.first for level in self.levels if level.settings.kind is not Kind.MAPPED], default=next)

    def truncate(self, offset: int) -> None:
        """Take back the messages from `offset` on."""
        self._keep_aside([frame for frame in self._aside if frame.first < offset])
        for level in self.levels:
            level.truncate(offset)

    def show(self, visible: int) -> None:
        for level in self.levels:
            level.show(visible)

    def close(self) -> None:
        for level in self.levels:
            level.close()
        self.levels = ()

    def _continued(self, frames: list[Frame], most_bytes: int, most_messages: int) -> list[Frame]:
        """A range that is longer than what a level has goes on in a faster one."""
        while True:
            offset = frames[-1].next
            size, count = sum(frame.bytes for frame in frames), sum(frame.count for frame in frames)
            if size >= most_bytes or count >= most_messages:
                return frames
            more = next((found for level in self.levels
                         if (found := level.read(offset, most_bytes - size, most_messages - count))), None)  # fmt: skip
            if not more:
                return frames
            frames = frames + more

    def _keep_aside(self, frames: list[Frame]) -> None:
        self._aside, self._aside_bytes = frames, sum(frame.bytes for frame in frames)

    def _put(self, place: int, frame: Frame) -> None:
        level = self.levels[place]
        if level.must_transfer(frame.bytes):
            self._transfer(place, all=True)
        level.write(frame)

    def _cascade(self, *, all: bool) -> None:
        for place, level in enumerate(self.levels[:-1]):
            if level.waiting and (all or level.waiting >= level.settings.batch):
                self._transfer(place, all=all)

    def _transfer(self, place: int, *, all: bool) -> None:
        """Move what waits in a level into the next; the last one's is the store's to take."""
        if place + 1 >= len(self.levels):
            return
        level, after = self.levels[place], self.levels[place + 1]
        batches = level.transfer(all=all)
        for batch in batches:
            for piece in _halves(batch, after.largest):
                self._put(place + 1, piece)
        if batches:
            level.transferred_to(batches[-1].next, batches)

    def build(self, next: int) -> None:
        """Levels are made when the first message comes: most partitions of a log may be silent."""
        if self._built:
            return
        self.levels = tuple(
            self._level(number, settings, next) for number, settings in enumerate(self._settings.levels, 1)
        )
        self._built = True

    def _level(self, number: int, settings: LevelSettings, next: int) -> Ring:
        if settings.kind is Kind.MAPPED:
            return MappedRing(number, settings, next, self._directory / f"level-{number}.ring")
        if settings.kind is Kind.SHARED and self._shared is not None:
            return self._shared.ring(number, settings, next, self._directory)
        return memory_level(number, settings, next)


def _halves(frame: Frame, largest: int) -> list[Frame]:
    """A frame in pieces that a level can hold."""
    if frame.bytes <= largest or frame.count == 1:
        return [frame]
    middle = frame.count // 2
    return [*_halves(frame.slice(0, middle), largest), *_halves(frame.slice(middle, frame.count), largest)]

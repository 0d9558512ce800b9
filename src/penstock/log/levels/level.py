"""Level: the ring of bytes that all levels but the last one are.

A ring lies in one buffer: eight words, a directory of frames, then the frames themselves. Positions in it only grow;
the place of a position is its remainder by the capacity. Whoever else has the buffer mapped can read it (`shared.py`).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from penstock.log.frame import HEADERS, KEYS, TIMES, Frame, Header
from penstock.log.settings import LevelSettings

WORDS = 8
MAGIC, CAPACITY, ENTRIES, TAIL, HEAD, FIRST_ENTRY, NEXT_ENTRY, VISIBLE = range(WORDS)
RING = 0x31474E4952474F4C
_TRIM = 4096


class Entry(NamedTuple):
    position: int
    header: Header
    written: int
    """When, in nanoseconds."""


class Counters:
    """What happened in a level."""

    def __init__(self) -> None:
        self.hits = self.misses = self.frames_written = self.bytes_written = self.bytes_read = 0
        self.batches = self.batch_bytes = self.largest_batch = 0
        self.available: float | None = None
        self.latency: float | None = None


class Ring:
    """A level in a buffer of `ring_bytes(settings)`. Its owner makes sure that one thread at a time uses it."""

    def __init__(self, number: int, settings: LevelSettings, buffer: memoryview, next: int) -> None:
        self.number, self.settings = number, settings
        self.counters = Counters()
        self.next = next
        """The offset after the last message here."""
        self.transferred = next
        """The offset after the last message that the next level has."""
        self._waiting = self._needed = 0
        self._buffer = buffer
        self._entries: list[Entry] = []
        self._firsts: list[int] = []
        self._start = self._evicted = 0
        self._head = self._tail = 0
        self._count = entries_of(settings.capacity)
        self._words = buffer[: 8 * WORDS].cast("q")
        self._directory = buffer[8 * WORDS : 8 * WORDS + 24 * self._count].cast("q")
        self._data = buffer[8 * WORDS + 24 * self._count :][: settings.capacity]
        self._words[:] = memoryview(bytes(8 * WORDS)).cast("q")
        self._words[CAPACITY], self._words[ENTRIES], self._words[MAGIC] = settings.capacity, self._count, RING

    @property
    def first(self) -> int:
        """The offset of the oldest message here."""
        return self._firsts[self._start] if self._start < len(self._firsts) else self.next

    @property
    def waiting(self) -> int:
        """The bytes that the next level does not have yet."""
        return self._waiting

    @property
    def needed(self) -> int:
        """The bytes that these may take in the next levels."""
        return self._needed

    @property
    def largest(self) -> int:
        """How large a frame may be, and how much may wait, so that there is always room."""
        return (self.settings.capacity - self.settings.overlap) // 2

    def must_transfer(self, size: int) -> bool:
        """Whether a frame of this size would overwrite what the next level does not have, or the overlap with it."""
        _, evict = self._place(size)
        tail, place, number = self._tail, self._start, len(self._entries) - self._start
        while place < len(self._entries) and (tail < evict or number >= self._count):
            tail, place, number = self._end(place), place + 1, number - 1
        if tail == self._tail:
            return False
        waits = self._find(self.transferred)
        if waits < place:
            return True
        return waits < len(self._entries) and self._entries[waits].position - tail < self.settings.overlap

    def write(self, frame: Frame) -> None:
        """Put a frame at the head; the oldest give way."""
        assert frame.first == self.next
        assert frame.bytes <= self.largest
        position, evict = self._place(frame.bytes)
        self._evict(evict)
        place = position % self.settings.capacity
        self._data[place : place + frame.bytes] = frame.data
        number = self._evicted + len(self._entries) - self._start
        slot = 3 * (number % self._count)
        self._directory[slot] = frame.first
        self._directory[slot + 1] = position
        self._directory[slot + 2] = frame.bytes
        self._entries.append(Entry(position, frame.header, time.monotonic_ns()))
        self._firsts.append(frame.first)
        self._head = position + frame.bytes
        self._words[HEAD] = self._head
        self._words[NEXT_ENTRY] = number + 1
        self.next = frame.next
        self._wait(frame.header, 1)
        self.counters.frames_written += 1
        self.counters.bytes_written += frame.bytes

    def transfer(self, *, all: bool, after: int = 0) -> list[Frame]:
        """What the next level does not have yet, in batches; `all` of it, or only whole batches.

        What ends before the offset `after` is on its way already.
        """
        batches: list[Frame] = []
        group: list[Frame] = []
        size = 0
        for place in range(self._find(max(self.transferred, after)), len(self._entries)):
            frame = self._frame(place)
            if group and frame.bytes >= self.settings.batch:  # large enough alone: not copied
                batches.append(Frame.join(group))
                group, size = [], 0
            group.append(frame)
            size += frame.bytes
            if size >= self.settings.batch:
                batches.append(Frame.join(group))
                group, size = [], 0
        if group and all:
            batches.append(Frame.join(group))
        return batches

    def transferred_to(self, offset: int, batches: Sequence[Frame]) -> None:
        """The next level has everything before `offset`; it got it in these batches."""
        place = self._find(self.transferred)
        if place < len(self._entries):
            waited = (time.monotonic_ns() - self._entries[place].written) / 1e9
            self.counters.latency = max(waited, self.counters.latency or 0.0)
        while place < len(self._entries) and self._firsts[place] < offset:
            self._wait(self._entries[place].header, -1)
            place += 1
        self.transferred = offset
        for batch in batches:
            self.counters.batches += 1
            self.counters.batch_bytes += batch.bytes
            self.counters.largest_batch = max(self.counters.largest_batch, batch.bytes)

    def read(self, offset: int, most_bytes: int, most_messages: int) -> list[Frame]:
        """The messages from `offset` on that are here; none if that one is not, and the request is to be forwarded."""
        frames: list[Frame] = []
        if not self.first <= offset < self.next:
            return frames
        place = self._find(offset)
        while place < len(self._entries) and most_bytes > 0 and most_messages > 0:
            whole = self._frame(place)
            frame = whole.within(offset, most_bytes, most_messages)
            if frame is whole:
                frame = Frame(memoryview(bytes(whole.data)), whole.header)
            frames.append(frame)
            most_bytes, most_messages, offset = most_bytes - frame.bytes, most_messages - frame.count, frame.next
            self.counters.bytes_read += frame.bytes
            if frame.next != whole.next:
                break
            place += 1
        return frames

    def skip_to(self, offset: int) -> None:
        """Be empty, and go on with `offset`: what is before it is in a later level."""
        self._evict(self._head)
        self.next = self.transferred = offset
        self._waiting = self._needed = 0

    def truncate(self, offset: int) -> None:
        """Take back the messages from `offset` on."""
        kept: Frame | None = None
        while len(self._entries) > self._start and self.next > offset:
            frame = self._frame(len(self._entries) - 1)
            if frame.first < offset:
                kept = Frame.parse(bytes(frame.slice(0, offset - frame.first).data), trusted=True)
            if frame.first >= self.transferred:
                self._wait(frame.header, -1)
            self._head = self._entries.pop().position
            self._firsts.pop()
            self.next = frame.first
        if self.next > offset:
            self.next = offset
        self._words[NEXT_ENTRY] = self._evicted + len(self._entries) - self._start
        self._words[HEAD] = self._head
        if kept is not None:
            before = self.transferred
            self.write(kept)
            if before > kept.first:
                self._wait(kept.header, -1)
        self.transferred = min(self.transferred, offset)

    def show(self, visible: int) -> None:
        """Readers in other processes may read up to here."""
        self._words[VISIBLE] = visible

    def close(self) -> None:
        for view in (self._words, self._directory, self._data, self._buffer):
            view.release()

    def _wait(self, header: Header, sign: int) -> None:
        self._waiting += sign * header.length
        self._needed += sign * joined_bytes(header)

    def _frame(self, place: int) -> Frame:
        entry = self._entries[place]
        start = entry.position % self.settings.capacity
        return Frame(self._data[start : start + entry.header.length], entry.header)

    def _find(self, offset: int) -> int:
        """The place of the frame with this offset, or where it would be."""
        place = bisect_right(self._firsts, offset, lo=self._start) - 1
        if place < self._start:
            return self._start
        header = self._entries[place].header
        return place if offset < header.base + header.messages else place + 1

    def _place(self, size: int) -> tuple[int, int]:
        """The position for a frame of this size, and up to where that overwrites."""
        capacity = self.settings.capacity
        position = self._head
        if position % capacity + size > capacity:
            position += capacity - position % capacity
        return position, position + size - capacity

    def _end(self, place: int) -> int:
        """The position behind a frame: where the next one begins, after a gap at the end of the ring perhaps."""
        return self._entries[place + 1].position if place + 1 < len(self._entries) else self._head

    def _evict(self, upto: int) -> None:
        last: Entry | None = None
        while self._start < len(self._entries) and (
            self._tail < upto or len(self._entries) - self._start >= self._count
        ):
            last = self._entries[self._start]
            self._tail = self._end(self._start)
            self._start += 1
            self._evicted += 1
        if last is None:
            return
        # Said before it is done, so that readers elsewhere never trust what is being overwritten.
        self._words[FIRST_ENTRY] = self._evicted
        self._words[TAIL] = self._tail
        self.counters.available = (time.monotonic_ns() - last.written) / 1e9
        if self._start > _TRIM and self._start > len(self._entries) // 2:
            del self._entries[: self._start], self._firsts[: self._start]
            self._start = 0


def joined_bytes(header: Header) -> int:
    """The largest size of a frame when it is joined with others that have columns which it lacks."""
    missing = 8 * (not header.columns & TIMES) + 5 * (not header.columns & KEYS) + 5 * (not header.columns & HEADERS)
    return header.length + missing * header.messages + 64


def entries_of(capacity: int) -> int:
    """How many frames a ring can have."""
    return max(16, capacity // 128)


def ring_bytes(capacity: int) -> int:
    return 8 * WORDS + 24 * entries_of(capacity) + capacity

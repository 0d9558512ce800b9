"""Index: where in a segment an offset or a time is, to within a few kilobytes.

It is kept in memory while the segment grows, and in a file beside it from when it is sealed. The file can be lost: it
is made again from the segment.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right

import xxhash

from penstock.log.frame import Header

_MAGIC = b"PLX\x01"
_START = struct.Struct("<4sIQqqqQQ")
NEVER = -(1 << 63)


class Index:
    """Entries (offset, position, latest time of all before it) of a segment, and what the segment comes to."""

    def __init__(self, base: int, every: int) -> None:
        self.every = every
        self.offsets, self.positions, self.times = array("q"), array("q"), array("q")
        self.end = base
        self.size = 0
        self.latest = NEVER
        self.producers = b""

    def add(self, header: Header, position: int) -> None:
        """A frame at `position`."""
        if not self.positions or position - self.positions[-1] >= self.every:
            self.positions.append(position)
            self.times.append(self.latest)
            self.offsets.append(header.base)
        self.end = header.base + header.messages
        self.size = position + header.length
        self.latest = max(self.latest, header.latest)

    def before(self, offset: int) -> tuple[int, int]:
        """The last frame in the index that is not behind an offset: its position and its own offset."""
        place = bisect_right(self.offsets, offset) - 1
        return (self.positions[place], self.offsets[place]) if place >= 0 else (0, 0)

    def position_at(self, time: int) -> int:
        """Where to begin to look for the first message that is not before `time`."""
        place = bisect_left(self.times, time) - 1
        return self.positions[place] if place >= 0 else 0

    def cut(self, size: int, end: int) -> None:
        """Forget what is after `size`."""
        while self.positions and self.positions[-1] >= size:
            for entries in (self.offsets, self.positions, self.times):
                entries.pop()
        self.size, self.end = size, end

    def pack(self) -> bytes:
        content = self.offsets.tobytes() + self.positions.tobytes() + self.times.tobytes() + self.producers
        start = _START.pack(_MAGIC, self.every, self.size, self.offsets[0] if self.offsets else self.end, self.end,
                            self.latest, len(self.offsets), len(self.producers))  # fmt: skip
        return struct.pack("<Q", xxhash.xxh3_64_intdigest(start + content)) + start + content

    @staticmethod
    def parse(content: bytes, base: int) -> Index | None:
        """The index in a file, or None if it is damaged or another segment's."""
        checksum = int.from_bytes(content[:8], "little")
        if len(content) < 8 + _START.size or xxhash.xxh3_64_intdigest(content[8:]) != checksum:
            return None
        magic, every, size, first, end, latest, entries, producers = _START.unpack_from(content, 8)
        place = 8 + _START.size
        if magic != _MAGIC or first < base or len(content) != place + 24 * entries + producers:
            return None
        index = Index(base, every)
        for column in (index.offsets, index.positions, index.times):
            column.frombytes(content[place : place + 8 * entries])
            place += 8 * entries
        index.size, index.end, index.latest, index.producers = size, end, latest, content[place:]
        return index

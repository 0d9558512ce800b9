"""A file about a partition in Kafka: the offset up to which the log knows it, and the producers at that offset."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import xxhash

_MAGIC = b"PLK\x01"
_START = struct.Struct("<4s?7xq")


@dataclass(frozen=True, slots=True)
class Note:
    end: int
    clean: bool
    """Whether nothing was on its way when it was written."""
    producers: bytes

    def pack(self) -> bytes:
        content = _START.pack(_MAGIC, self.clean, self.end) + self.producers
        return struct.pack("<Q", xxhash.xxh3_64_intdigest(content)) + content

    @staticmethod
    def parse(content: bytes | None) -> Note | None:
        """The note in a file; None if it is missing or damaged: then Kafka is read."""
        if content is None or len(content) < 8 + _START.size:
            return None
        if xxhash.xxh3_64_intdigest(content[8:]) != int.from_bytes(content[:8], "little"):
            return None
        magic, clean, end = _START.unpack_from(content, 8)
        return Note(end, clean, content[8 + _START.size :]) if magic == _MAGIC else None

"""Frames of TCP: a length, the number of the request, a head (MessagePack), and bulk data.

| bytes | |
|---|---|
| 0-3 | how many bytes follow the first 16 |
| 4-7 | the number of the request; its reply has the same |
| 8-11 | how many of them are the head |
| 12-15 | a mark, which no other protocol has there |

All little endian. The head is padded with zeros to eight bytes, so that frames of messages lie aligned.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import PenstockError

PORT = 19997
HEADER = struct.Struct("<IIII")
MARK = 0x01_4B_4C_50
"""`PLK` and the version of this layout."""
LARGEST_HEAD = 64 * 1024
LARGEST = 72 * 1024 * 1024
"""Of a whole frame, unless a server or a client says less."""
_OTHER_PROTOCOLS = {
    b"GET ": "HTTP", b"POST": "HTTP", b"PUT ": "HTTP", b"HEAD": "HTTP", b"DELE": "HTTP", b"OPTI": "HTTP",
    b"HTTP": "HTTP", b"\x16\x03\x01": "TLS", b"\x16\x03\x03": "TLS",
}  # fmt: skip


class NotAFrame(PenstockError):
    """Bytes that are no frame of this protocol: whatever comes after them cannot be read either."""

    number = 0


@dataclass(frozen=True, slots=True)
class Packed:
    """One frame. The bulk is a view of memory that nothing else uses."""

    number: int
    head: memoryview
    bulk: memoryview

    @property
    def size(self) -> int:
        return HEADER.size + padded(len(self.head)) + len(self.bulk)


def padded(size: int) -> int:
    return (size + 7) & ~7


def pack(number: int, head: bytes, *bulk: bytes | memoryview) -> list[bytes | memoryview]:
    """The parts of one frame, to be written one after the other; the bulk is not copied."""
    room = padded(len(head))
    length = room + sum(map(len, bulk))
    return [HEADER.pack(length, number, len(head), MARK) + head + bytes(room - len(head)), *bulk]


class Reader:
    """Cuts a stream of bytes into frames. Memory is bounded by `largest`, and asked for only as bytes arrive."""

    def __init__(self, largest: int = LARGEST) -> None:
        self.largest = largest
        self._held = bytearray()
        self.held = 0
        """Bytes of frames that are not given out yet."""

    @property
    def missing(self) -> int:
        """How many bytes at least are needed for the next frame."""
        if len(self._held) < HEADER.size:
            return HEADER.size - len(self._held)
        return max(HEADER.size + int.from_bytes(self._held[:4], "little") - len(self._held), 0)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[Packed]:
        """The frames that are whole now. Raises NotAFrame as soon as it is clear that none will follow."""
        self._held += data
        at = 0
        try:
            while len(self._held) - at >= HEADER.size:
                length, number, head, mark = HEADER.unpack_from(self._held, at)
                self._check(length, number, head, mark, at)
                end = at + HEADER.size + length
                if len(self._held) < end:
                    break
                # A copy, which starts at an aligned address; what is held moves when more arrives.
                whole = memoryview(bytes(memoryview(self._held)[at + HEADER.size : end]))
                at = end
                yield Packed(number, whole[:head], whole[padded(head) :])
        finally:
            if at:
                del self._held[:at]
            self.held = len(self._held)
        if self._held and len(self._held) < HEADER.size:
            self._look_for_other_protocols(0)

    def _check(self, length: int, number: int, head: int, mark: int, at: int) -> None:
        if mark != MARK:
            self._look_for_other_protocols(at)
            raise NotAFrame("these bytes are no frame of the log's protocol", None,
                            "the port is for Penstock's own clients; HTTP has a port of its own")  # fmt: skip
        problem = None
        if length > self.largest:
            problem = f"a frame of {length:,} bytes is longer than the {self.largest:,} that are allowed"
        elif not 0 < head <= LARGEST_HEAD or padded(head) > length:
            problem = f"a frame of {length:,} bytes cannot have a head of {head:,}"
        if problem is not None:
            error = NotAFrame(problem, None, "send fewer messages at once")
            error.number = number
            raise error

    def _look_for_other_protocols(self, at: int) -> None:
        start = bytes(self._held[at : at + 4])
        for mark, name in _OTHER_PROTOCOLS.items():
            if len(start) == 4 and start.startswith(mark):
                fix = "HTTP has a port of its own" if name == "HTTP" else "this server does not use TLS"
                raise NotAFrame(f"this is {name}, not the log's protocol", None, fix)

"""Frames of one message without key and headers, which many tiny publishers make many of.

They are what `layout` would make and accept; here without arrays, whose making costs more than such a message.
"""

from __future__ import annotations

import struct

import xxhash

from penstock.log.errors import BadFrame
from penstock.log.header import HEADER_BYTES, LARGEST_MESSAGE, MAGIC, SEVERAL, VERSION, Header

_OFFSETS = struct.Struct("<ii")
_PADDING = tuple(bytes(-size % 8) for size in range(8))
VALUE = HEADER_BYTES + _OFFSETS.size
"""Where the value begins."""


def packed(
    value: bytes, moment: int, base: int, producer: int, epoch: int, sequence: int
) -> tuple[memoryview, Header]:
    """The bytes and the header of a frame with this value."""
    size = len(value)
    if size > LARGEST_MESSAGE:
        raise BadFrame(f"a message of {size} bytes", None, f"at most {LARGEST_MESSAGE}")
    body = _OFFSETS.pack(0, size) + value + _PADDING[size % 8]
    header = Header(
        MAGIC, VERSION, 0, HEADER_BYTES + len(body), 1, size, 0, 0, 0, epoch, 0, xxhash.xxh3_64_intdigest(body),
        base, 0, moment, moment, producer, sequence,
    )  # fmt: skip
    return memoryview(header.pack() + body), header


def is_single(header: Header) -> bool:
    return header.messages == 1 and not header.columns and not header.runs


def is_sound(data: memoryview, header: Header) -> bool:
    """Whether a frame that says of itself that it is one of these has the structure of one."""
    return (
        header.values <= LARGEST_MESSAGE
        and header.length == VALUE + ((header.values + 7) & ~7)
        and _OFFSETS.unpack_from(data, HEADER_BYTES) == (0, header.values)
        and header.producer != SEVERAL
        and header.earliest == header.latest
    )

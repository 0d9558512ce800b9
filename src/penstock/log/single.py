"""Frames of one message without key and headers, as many tiny publishers send them.

They have the bytes that `layout` would write, but are made without arrays, which would cost more than such a message.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

import xxhash

from penstock.log.errors import BadFrame
from penstock.log.header import (
    HEADER_BYTES,
    LARGEST_MESSAGE,
    MAGIC,
    NOBODY,
    SEVERAL,
    TIMES,
    VERSION,
    Header,
    Run,
    can_be_counted,
    merged_runs,
    number_of,
)

_OFFSETS = struct.Struct("<ii")
_RUN = struct.Struct("<qqiI")
_TIME = struct.Struct("<q")
_PADDING = tuple(bytes(-size % 8) for size in range(8))
VALUE = HEADER_BYTES + _OFFSETS.size
"""Where the value begins."""


def packed(
    value: bytes, moment: int, base: int, producer: int, epoch: int, sequence: int, durable: int = 0
) -> tuple[memoryview, Header]:
    """The bytes and the header of a frame with this value."""
    size = len(value)
    if size > LARGEST_MESSAGE:
        raise BadFrame(f"a message of {size} bytes", None, f"at most {LARGEST_MESSAGE}")
    body = _OFFSETS.pack(0, size) + value + _PADDING[size % 8]
    header = Header(
        MAGIC, VERSION, 0, HEADER_BYTES + len(body), 1, size, 0, 0, 0, epoch, 0, xxhash.xxh3_64_intdigest(body),
        base, durable, moment, moment, producer, sequence,
    )  # fmt: skip
    return memoryview(header.pack() + body), header


def can_cut(header: Header) -> bool:
    """Whether `cut` knows how to take one message out of such a frame."""
    return not header.columns & ~TIMES and header.producer != SEVERAL


def cut(data: memoryview, header: Header, place: int) -> tuple[memoryview, Header]:
    """The bytes and the header of a frame with one of the messages."""
    begin, end = _OFFSETS.unpack_from(data, HEADER_BYTES + 4 * place)
    values = HEADER_BYTES + ((4 * (header.messages + 1) + 7) & ~7)
    moment = header.earliest
    if header.columns & TIMES:
        (moment,) = _TIME.unpack_from(data, values + ((header.values + 7) & ~7) + 8 * place)
    sequence = header.sequence if header.producer == NOBODY else number_of(header.sequence, place)
    value = bytes(data[values + begin : values + end])
    return packed(value, moment, header.base + place, header.producer, header.epoch, sequence, header.durable)


def joined(
    views: Sequence[memoryview], headers: Sequence[Header], base: int, durable: int
) -> tuple[memoryview, Header]:
    """The bytes and the header of one frame with the messages of many."""
    count = len(headers)
    values = b"".join([view[VALUE : VALUE + header.values] for view, header in zip(views, headers, strict=True)])
    times = [header.earliest for header in headers]
    earliest, latest = min(times), max(times)
    runs = merged_runs([Run(header.producer, header.sequence, header.epoch, 1) for header in headers])
    places = struct.pack(f"<{count + 1}i", 0, *accumulate([header.values for header in headers]))
    parts = [places, _PADDING[len(places) % 8], values, _PADDING[len(values) % 8]]
    if earliest != latest:
        parts.append(struct.pack(f"<{count}q", *times))
    first = runs[0]
    if len(runs) > 1:
        parts += [_RUN.pack(*run) for run in runs]
        first = Run(SEVERAL, 0, 0, count)
    body = b"".join(parts)
    header = Header(
        MAGIC, VERSION, TIMES if earliest != latest else 0, HEADER_BYTES + len(body), count, len(values), 0, 0,
        len(runs) if len(runs) > 1 else 0, first.epoch, 0, xxhash.xxh3_64_intdigest(body), base, durable, earliest,
        latest, first.producer, first.sequence,
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
        and can_be_counted(header)
    )

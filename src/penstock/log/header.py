"""Header: the fixed part of a frame, and the runs of producers in it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from penstock.log.errors import BadFrame

MAGIC = b"PLF\x01"
VERSION = 1
KEYS, HEADERS, TIMES, OFFSETS = 1, 2, 4, 8
LARGEST_MESSAGE = 16 << 20
LARGEST_FRAME = 64 << 20
NOBODY = -1
"""The producer of messages that nobody numbered."""
SEVERAL = -2
"""The producer of a frame whose runs say who produced what."""
LAST = (1 << 63) - 1
"""The largest offset or number that a frame can hold."""
RUN = np.dtype([("producer", "<i8"), ("sequence", "<i8"), ("epoch", "<i4"), ("count", "<u4")])
_HEADER = struct.Struct("<4sHHIIIIIIiIQqqqqqq")
_CHECKSUM = struct.Struct("<Q")
HEADER_BYTES = _HEADER.size + _CHECKSUM.size


class Header(NamedTuple):
    magic: bytes
    version: int
    columns: int
    length: int
    """Bytes of the whole frame, header included; a multiple of eight."""
    messages: int
    values: int
    keys: int
    headers: int
    runs: int
    epoch: int
    reserved: int
    body: int
    """The checksum of all that follows the header."""
    base: int
    """The offset of the first message."""
    durable: int
    """What was durable when this frame was written: all offsets below it."""
    earliest: int
    latest: int
    producer: int
    sequence: int

    def pack(self) -> bytes:
        packed = _HEADER.pack(*self)
        return packed + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(packed))


class Run(NamedTuple):
    """Messages of one producer that follow each other."""

    producer: int
    sequence: int
    epoch: int
    messages: int


def parse_header(view: memoryview) -> Header:
    """The header at the start of `view`, if it has its checksum."""
    if len(view) < HEADER_BYTES:
        raise BadFrame(f"{len(view)} bytes are too few for the header of a frame")
    header = Header._make(_HEADER.unpack_from(view))
    if header.magic != MAGIC:
        raise BadFrame("no frame begins here")
    if xxhash.xxh3_64_intdigest(view[: _HEADER.size]) != _CHECKSUM.unpack_from(view, _HEADER.size)[0]:
        raise BadFrame("the header of a frame does not have its checksum")
    if header.version != VERSION:
        raise BadFrame(f"a frame of version {header.version}", None, "read it with a newer Penstock")
    if not HEADER_BYTES < header.length <= LARGEST_FRAME or header.length % 8 or not header.messages:
        raise BadFrame(f"a frame of {header.length} bytes", None, f"at most {LARGEST_FRAME}")
    return header


def number_of(sequence: int, place: int) -> int:
    """The number of a message so many places behind the first message of a run.

    A push beyond the largest number is refused; but it was not always, and what is stored can be read.
    """
    return min(sequence + place, LAST)


def can_be_counted(header: Header) -> bool:
    """Whether offsets and numbers of all its messages, and of the message after them, are not too large."""
    last = LAST - header.messages
    return -1 <= header.base <= last and (  # -1 until a log gives it an offset
        header.producer in (NOBODY, SEVERAL)
        or (header.producer >= 0 and header.epoch >= 0 and 0 <= header.sequence <= last)
    )


def cut_runs(runs: Sequence[Run], start: int, stop: int) -> list[Run]:
    """The runs of the messages at the places `start` to `stop`."""
    cut, place = [], 0
    for run in runs:
        begin, end = max(start, place), min(stop, place + run.messages)
        if begin < end:
            sequence = run.sequence if run.producer == NOBODY else number_of(run.sequence, begin - place)
            cut.append(run._replace(sequence=sequence, messages=end - begin))
        place += run.messages
    return cut


def merged_runs(runs: Sequence[Run]) -> list[Run]:
    """The same runs in as few as possible."""
    merged = [runs[0]]
    for run in runs[1:]:
        last = merged[-1]
        follows = run.producer == NOBODY or run.sequence == last.sequence + last.messages
        if run.producer == last.producer and run.epoch == last.epoch and follows:
            merged[-1] = last._replace(messages=last.messages + run.messages)
        else:
            merged.append(run)
    return merged

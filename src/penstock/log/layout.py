"""Where the columns of a frame are in its bytes, and a check that they can be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from penstock.log.columns import Column
from penstock.log.errors import BadFrame
from penstock.log.header import (
    HEADER_BYTES,
    HEADERS,
    KEYS,
    LARGEST_FRAME,
    LARGEST_MESSAGE,
    LAST,
    MAGIC,
    NOBODY,
    OFFSETS,
    RUN,
    SEVERAL,
    TIMES,
    VERSION,
    Header,
    Run,
    can_be_counted,
)

Integers = npt.NDArray[np.int64]


class Sections(NamedTuple):
    values: Column
    keys: Column | None
    headers: Column | None
    times: Integers | None
    offsets: Integers | None
    runs: npt.NDArray[Any]
    end: int


def sections(data: memoryview, header: Header) -> Sections:
    """The columns of a frame, not copied."""
    keys = headers = times = offsets = None
    values, place = _column(data, header, HEADER_BYTES, header.values, nullable=False)
    if header.columns & KEYS:
        keys, place = _column(data, header, place, header.keys, nullable=True)
    if header.columns & HEADERS:
        headers, place = _column(data, header, place, header.headers, nullable=True)
    if header.columns & TIMES:
        times, place = np.frombuffer(data, np.int64, header.messages, place), place + 8 * header.messages
    if header.columns & OFFSETS:
        offsets, place = np.frombuffer(data, np.int64, header.messages, place), place + 8 * header.messages
    runs = np.frombuffer(data, RUN, header.runs, place)
    return Sections(values, keys, headers, times, offsets, runs, place + RUN.itemsize * header.runs)


def _column(data: memoryview, header: Header, place: int, size: int, *, nullable: bool) -> tuple[Column, int]:
    count, validity = header.messages, None
    offsets = np.frombuffer(data, np.int32, count + 1, place)
    place += _padded(4 * (count + 1))
    if nullable:
        validity, place = data[place : place + (count + 7) // 8], place + _padded((count + 7) // 8)
    return Column(offsets, data[place : place + size], validity), place + _padded(size)


def assembled(
    values: Column,
    keys: Column | None,
    headers: Column | None,
    times: Integers | int,
    runs: Sequence[Run],
    base: int,
    offsets: Integers | None,
    durable: int,
) -> tuple[memoryview, Header]:
    """The bytes and the header of a frame with these columns."""
    count, columns = len(values), 0
    parts: list[Any] = []
    _add(parts, values, nullable=False)
    for flag, column in ((KEYS, keys), (HEADERS, headers)):
        if column is not None:
            columns |= flag
            _add(parts, column, nullable=True)
    if isinstance(times, int):
        earliest = latest = times
    else:
        earliest, latest = int(times.min()), int(times.max())
        if earliest != latest:
            columns |= TIMES
            parts.append(np.ascontiguousarray(times))
    if offsets is not None:
        columns |= OFFSETS
        parts.append(np.ascontiguousarray(offsets))
    first = runs[0] if len(runs) == 1 else Run(SEVERAL, 0, 0, count)
    if len(runs) > 1:
        parts.append(np.array(runs, RUN).tobytes())
    body = b"".join(parts)
    length = HEADER_BYTES + len(body)
    if length > LARGEST_FRAME:
        raise BadFrame(f"a frame of {length} bytes", None, f"at most {LARGEST_FRAME}: make several of it")
    header = Header(
        MAGIC, VERSION, columns, length, count, len(values.data), len(keys.data) if keys else 0,
        len(headers.data) if headers else 0, len(runs) if len(runs) > 1 else 0, first.epoch, 0,
        xxhash.xxh3_64_intdigest(body), base, durable, earliest, latest, first.producer, first.sequence,
    )  # fmt: skip
    return memoryview(header.pack() + body), header


def check_sizes(*columns: Column | None) -> None:
    largest = max(int(np.diff(column.offsets).max()) for column in columns if column is not None)
    if largest > LARGEST_MESSAGE:
        raise BadFrame(f"a message of {largest} bytes", None, f"at most {LARGEST_MESSAGE}")


def check_structure(data: memoryview, header: Header) -> None:
    """Refuse what a stranger could write with a right checksum to make us read outside the frame."""
    wanted = HEADER_BYTES + _padded(4 * (header.messages + 1)) + _padded(header.values)
    if wanted > header.length or header.columns & ~(KEYS | HEADERS | TIMES | OFFSETS):
        raise BadFrame("a frame whose header does not fit its body")
    try:
        parts = sections(data, header)
    except ValueError:
        raise BadFrame("a frame whose header does not fit its body") from None
    if parts.end != header.length:
        raise BadFrame("a frame whose header does not fit its body")
    for column in (parts.values, parts.keys, parts.headers):
        if column is not None and not column.is_sound():
            raise BadFrame("a frame whose offsets do not fit its values")
    check_sizes(parts.values, parts.keys, parts.headers)
    if (header.producer == SEVERAL) != bool(header.runs) or (
        header.runs and int(parts.runs["count"].sum(dtype=np.int64)) != header.messages
    ):
        raise BadFrame("a frame whose runs do not fit its messages")
    if not can_be_counted(header) or not _can_be_counted(parts.runs):
        raise BadFrame("a frame with offsets or numbers that cannot be")
    times = parts.times
    found = (header.earliest, header.earliest) if times is None else (int(times.min()), int(times.max()))
    if found != (header.earliest, header.latest):
        raise BadFrame("a frame whose times do not fit its header")
    if parts.offsets is not None and (parts.offsets[0] != header.base or (np.diff(parts.offsets) <= 0).any()):
        raise BadFrame("a frame whose messages are not in order")


def _can_be_counted(runs: npt.NDArray[Any]) -> bool:
    nobody, numbers = runs["producer"] == NOBODY, runs["sequence"]
    counted = (runs["producer"] >= 0) & (runs["epoch"] >= 0)
    counted &= (numbers >= 0) & (numbers <= LAST - runs["count"].astype(np.int64))
    return bool((nobody | counted).all())


def _add(parts: list[Any], column: Column, *, nullable: bool) -> None:
    for part in (column.offsets.tobytes(), *((column.bitmap(),) if nullable else ()), column.data):
        parts.append(part)
        if len(part) % 8:
            parts.append(bytes(-len(part) % 8))


def _padded(size: int) -> int:
    return (size + 7) & ~7

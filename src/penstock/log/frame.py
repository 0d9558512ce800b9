"""Frame: some messages as bytes, in the one format of all levels, of the wire and of the files.

A header of fixed size, then Arrow buffers at multiples of eight bytes: a frame becomes Arrow arrays without copying.
Columns that no message needs take no space. `docs/decisions/log-store.md` shows the layout.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from penstock.log.columns import Column, column_of, joined_columns
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
RUN = np.dtype([("producer", "<i8"), ("sequence", "<i8"), ("epoch", "<i4"), ("count", "<u4")])
_HEADER = struct.Struct("<4sHHIIIIIIiIQqqqqqq")
_CHECKSUM = struct.Struct("<Q")
HEADER_BYTES = _HEADER.size + _CHECKSUM.size

Integers = npt.NDArray[np.int64]
Buffer = bytes | bytearray | memoryview


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


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Messages with consecutive offsets. The bytes are never changed; other frames may share them."""

    data: memoryview
    header: Header

    # ---- what is in it

    @property
    def first(self) -> int:
        return self.header.base

    @property
    def next(self) -> int:
        """The offset after the last message."""
        return int(self.offsets[-1]) + 1 if self.header.columns & OFFSETS else self.header.base + self.header.messages

    @property
    def count(self) -> int:
        return self.header.messages

    def __len__(self) -> int:
        return self.header.messages

    @property
    def bytes(self) -> int:
        """The size of the whole frame."""
        return self.header.length

    @property
    def value_column(self) -> Column:
        return _sections(self).values

    @property
    def key_column(self) -> Column | None:
        return _sections(self).keys

    @property
    def header_column(self) -> Column | None:
        return _sections(self).headers

    @property
    def values(self) -> pa.Array:
        return self.value_column.to_arrow()

    @property
    def keys(self) -> pa.Array:
        keys = self.key_column
        return pa.nulls(self.count, pa.binary()) if keys is None else keys.to_arrow()

    @property
    def headers(self) -> pa.Array:
        """One JSON object per message, or null."""
        headers = self.header_column
        return pa.nulls(self.count, pa.binary()) if headers is None else headers.to_arrow()

    @property
    def times(self) -> Integers:
        """Microseconds since 1970."""
        times = _sections(self).times
        return np.full(self.count, self.header.earliest, np.int64) if times is None else times

    @property
    def offsets(self) -> Integers:
        offsets = _sections(self).offsets if self.header.columns & OFFSETS else None
        return np.arange(self.first, self.first + self.count, dtype=np.int64) if offsets is None else offsets

    @property
    def runs(self) -> list[Run]:
        """Who produced what, in order."""
        header = self.header
        if header.producer != SEVERAL:
            return [Run(header.producer, header.sequence, header.epoch, header.messages)]
        return [Run(*run) for run in _sections(self).runs.tolist()]

    def to_arrow(self) -> pa.RecordBatch:
        """The messages as columns offset, time, key, value, headers; large ones are not copied."""
        times = pa.array(self.times).view(pa.timestamp("us", "UTC"))
        columns = [pa.array(self.offsets), times, self.keys, self.values, self.headers]
        return pa.RecordBatch.from_arrays(columns, ["offset", "time", "key", "value", "headers"])

    # ---- other frames of it

    def at(self, base: int, durable: int = 0) -> Frame:
        """The same messages at the offset `base`."""
        header = self.header._replace(base=base, durable=durable)
        return Frame(memoryview(b"".join((header.pack(), self.data[HEADER_BYTES:]))), header)

    def slice(self, start: int, stop: int) -> Frame:
        """The messages at the places `start` to `stop`."""
        start, stop = max(start, 0), min(stop, self.count)
        if start == 0 and stop == self.count:
            return self
        parts = _sections(self)
        return _assembled(
            parts.values.slice(start, stop),
            parts.keys and parts.keys.slice(start, stop),
            parts.headers and parts.headers.slice(start, stop),
            self.header.earliest if parts.times is None else parts.times[start:stop],
            _cut(self.runs, start, stop),
            self.first + start if parts.offsets is None else int(parts.offsets[start]),
            None if parts.offsets is None else parts.offsets[start:stop],
            self.header.durable,
        )

    def take(self, mask: npt.NDArray[np.bool_]) -> Frame | None:
        """The messages whose place in `mask` is true, with their offsets; None if there are none."""
        if mask.all():
            return self
        if not mask.any():
            return None
        parts, offsets = _sections(self), self.offsets[mask]
        runs = [Run(NOBODY, 0, 0, len(offsets))]
        return _assembled(parts.values.take(mask), parts.keys and parts.keys.take(mask),
                          parts.headers and parts.headers.take(mask), self.times[mask], runs, int(offsets[0]),
                          offsets, self.header.durable)  # fmt: skip

    def within(self, offset: int, most_bytes: int, most_messages: int | None = None) -> Frame:
        """The messages from `offset` on, at least one, whose values, keys and headers fit into `most_bytes`."""
        start = max(0, offset - self.first)
        stop = self.count if most_messages is None else min(self.count, start + max(1, most_messages))
        if self.bytes > most_bytes or start:
            parts = _sections(self)
            ends: npt.NDArray[Any] = parts.values.offsets
            for column in (parts.keys, parts.headers):
                if column is not None:
                    ends = ends + column.offsets.astype(np.int64)
            fitting = int(ends.searchsorted(int(ends[start]) + most_bytes, side="right")) - 1
            stop = min(stop, max(fitting, start + 1))
        return self.slice(start, stop)

    # ---- frames of other things

    @staticmethod
    def pack(
        values: Sequence[Buffer] | pa.Array,
        *,
        keys: Sequence[Buffer | None] | pa.Array | None = None,
        headers: Sequence[Buffer | None] | pa.Array | None = None,
        times: Sequence[int] | Integers | None = None,
        base: int = 0,
        producer: int = NOBODY,
        epoch: int = 0,
        sequence: int = 0,
    ) -> Frame:
        """A frame of these messages; `headers` are JSON objects as bytes, `times` are microseconds, or else now."""
        if not len(values):
            raise BadFrame("a frame without messages", None, "leave it out")
        if any(other is not None and len(other) != len(values) for other in (keys, headers, times)):
            raise BadFrame("keys, headers or times are not as many as the values", None, "give one for each message")
        stamps = time.time_ns() // 1000 if times is None else np.asarray(times, np.int64)
        value_column = column_of(values, "value")
        key_column = None if keys is None else column_of(keys, "key")
        header_column = None if headers is None else column_of(headers, "headers")
        if value_column.validity is not None:
            raise BadFrame("a message without a value", None, "give b'' for an empty one")
        _check_sizes(value_column, key_column, header_column)
        runs = [Run(producer, sequence, epoch, len(values))]
        return _assembled(value_column, key_column, header_column, stamps, runs, base, None, 0)

    @staticmethod
    def join(frames: Sequence[Frame]) -> Frame:
        """One frame of several whose offsets follow each other."""
        if len(frames) == 1:
            return frames[0]
        expected = frames[0].first
        for frame in frames:
            assert frame.first == expected
            assert not frame.header.columns & OFFSETS
            expected += frame.count
        if all(frame.header.messages == 1 and not frame.header.columns for frame in frames):
            return _joined_singles(frames)
        counts = [frame.count for frame in frames]
        parts = [_sections(frame) for frame in frames]
        values = joined_columns([part.values for part in parts], counts)
        keys = joined_columns([part.keys for part in parts], counts)
        headers = joined_columns([part.headers for part in parts], counts)
        runs = _merged([run for frame in frames for run in frame.runs])
        assert values is not None
        times: Integers | int = frames[0].header.earliest
        if any(frame.header.earliest != times or frame.header.latest != times for frame in frames):
            times = np.concatenate([frame.times for frame in frames])
        return _assembled(values, keys, headers, times, runs, frames[0].first, None, frames[-1].header.durable)

    @staticmethod
    def parse(data: Buffer, *, trusted: bool = False) -> Frame:
        """The frame at the start of `data`, checked. `trusted` leaves out what a right checksum of ours implies."""
        view = memoryview(data)
        header = parse_header(view)
        if len(view) < header.length:
            raise BadFrame(f"a frame of {header.length} bytes of which only {len(view)} are there")
        frame = Frame(view[: header.length], header)
        if xxhash.xxh3_64_intdigest(frame.data[HEADER_BYTES:]) != header.body:
            raise BadFrame(f"the body of frame {header.base} does not have its checksum")
        if not trusted:
            _check_structure(frame)
        return frame


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


class _Sections(NamedTuple):
    values: Column
    keys: Column | None
    headers: Column | None
    times: Integers | None
    offsets: Integers | None
    runs: npt.NDArray[Any]
    end: int


def _sections(frame: Frame) -> _Sections:
    header = frame.header
    keys = headers = times = offsets = None
    values, place = _column(frame, HEADER_BYTES, header.values, nullable=False)
    if header.columns & KEYS:
        keys, place = _column(frame, place, header.keys, nullable=True)
    if header.columns & HEADERS:
        headers, place = _column(frame, place, header.headers, nullable=True)
    if header.columns & TIMES:
        times, place = np.frombuffer(frame.data, np.int64, header.messages, place), place + 8 * header.messages
    if header.columns & OFFSETS:
        offsets, place = np.frombuffer(frame.data, np.int64, header.messages, place), place + 8 * header.messages
    runs = np.frombuffer(frame.data, RUN, header.runs, place)
    return _Sections(values, keys, headers, times, offsets, runs, place + RUN.itemsize * header.runs)


def _column(frame: Frame, place: int, size: int, *, nullable: bool) -> tuple[Column, int]:
    count, data, validity = frame.header.messages, frame.data, None
    offsets = np.frombuffer(data, np.int32, count + 1, place)
    place += _padded(4 * (count + 1))
    if nullable:
        validity, place = data[place : place + (count + 7) // 8], place + _padded((count + 7) // 8)
    return Column(offsets, data[place : place + size], validity), place + _padded(size)


def _assembled(
    values: Column,
    keys: Column | None,
    headers: Column | None,
    times: Integers | int,
    runs: Sequence[Run],
    base: int,
    offsets: Integers | None,
    durable: int,
) -> Frame:
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
    return Frame(memoryview(header.pack() + body), header)


def _joined_singles(frames: Sequence[Frame]) -> Frame:
    """What `join` does for frames of one value each: many tiny publishers make many of them."""
    headers = [frame.header for frame in frames]
    offsets = np.zeros(len(frames) + 1, np.int32)
    np.cumsum([header.values for header in headers], out=offsets[1:])
    start = HEADER_BYTES + 8
    data = b"".join([frame.data[start : start + header.values] for frame, header in zip(frames, headers, strict=True)])
    times = np.array([header.earliest for header in headers], np.int64)
    runs = _merged([Run(header.producer, header.sequence, header.epoch, 1) for header in headers])
    values = Column(offsets, memoryview(data))
    return _assembled(values, None, None, times, runs, headers[0].base, None, headers[-1].durable)


def _add(parts: list[Any], column: Column, *, nullable: bool) -> None:
    for part in (column.offsets.tobytes(), *((column.bitmap(),) if nullable else ()), column.data):
        parts.append(part)
        if len(part) % 8:
            parts.append(bytes(-len(part) % 8))


def _padded(size: int) -> int:
    return (size + 7) & ~7


def _cut(runs: Sequence[Run], start: int, stop: int) -> list[Run]:
    """The runs of the messages at the places `start` to `stop`."""
    cut, place = [], 0
    for run in runs:
        begin, end = max(start, place), min(stop, place + run.messages)
        if begin < end:
            sequence = run.sequence if run.producer == NOBODY else run.sequence + begin - place
            cut.append(run._replace(sequence=sequence, messages=end - begin))
        place += run.messages
    return cut


def _merged(runs: Sequence[Run]) -> list[Run]:
    """Fewer runs that say the same."""
    merged = [runs[0]]
    for run in runs[1:]:
        last = merged[-1]
        follows = run.producer == NOBODY or run.sequence == last.sequence + last.messages
        if run.producer == last.producer and run.epoch == last.epoch and follows:
            merged[-1] = last._replace(messages=last.messages + run.messages)
        else:
            merged.append(run)
    return merged


def _check_sizes(*columns: Column | None) -> None:
    largest = max(int(np.diff(column.offsets).max()) for column in columns if column is not None)
    if largest > LARGEST_MESSAGE:
        raise BadFrame(f"a message of {largest} bytes", None, f"at most {LARGEST_MESSAGE}")


def _check_structure(frame: Frame) -> None:
    """What a stranger could have written with a right checksum, and would make us read where nothing is."""
    header = frame.header
    wanted = HEADER_BYTES + _padded(4 * (header.messages + 1)) + _padded(header.values)
    if wanted > header.length or header.columns & ~(KEYS | HEADERS | TIMES | OFFSETS):
        raise BadFrame("a frame whose header does not fit its body")
    try:
        parts = _sections(frame)
    except ValueError:
        raise BadFrame("a frame whose header does not fit its body") from None
    if parts.end != header.length:
        raise BadFrame("a frame whose header does not fit its body")
    for column in (parts.values, parts.keys, parts.headers):
        if column is not None and not column.is_sound():
            raise BadFrame("a frame whose offsets do not fit its values")
    _check_sizes(parts.values, parts.keys, parts.headers)
    if (header.producer == SEVERAL) != bool(header.runs) or (
        header.runs and int(parts.runs["count"].sum(dtype=np.int64)) != header.messages
    ):
        raise BadFrame("a frame whose runs do not fit its messages")
    times = parts.times
    found = (header.earliest, header.earliest) if times is None else (int(times.min()), int(times.max()))
    if found != (header.earliest, header.latest):
        raise BadFrame("a frame whose times do not fit its header")
    if parts.offsets is not None and (parts.offsets[0] != header.base or (np.diff(parts.offsets) <= 0).any()):
        raise BadFrame("a frame whose messages are not in order")

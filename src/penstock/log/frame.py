"""Frame: some messages as bytes, in the one format of all levels, of the wire and of the files.

A header of fixed size, then Arrow buffers at multiples of eight bytes: a frame becomes Arrow arrays without copying.
Columns that no message needs take no space. `docs/decisions/log-store.md` shows the layout.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from penstock.log import single
from penstock.log.columns import Column, column_of, joined_columns
from penstock.log.errors import BadFrame
from penstock.log.header import (
    HEADER_BYTES,
    HEADERS,
    KEYS,
    LARGEST_FRAME,
    LARGEST_MESSAGE,
    MAGIC,
    NOBODY,
    OFFSETS,
    SEVERAL,
    TIMES,
    Header,
    Run,
    cut_runs,
    merged_runs,
    parse_header,
)
from penstock.log.layout import Integers, assembled, check_sizes, check_structure, sections

__all__ = [
    "HEADERS",
    "HEADER_BYTES",
    "KEYS",
    "LARGEST_FRAME",
    "LARGEST_MESSAGE",
    "MAGIC",
    "NOBODY",
    "OFFSETS",
    "SCHEMA",
    "SEVERAL",
    "TIMES",
    "Frame",
    "Header",
    "Run",
    "parse_header",
]
Buffer = bytes | bytearray | memoryview
_TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"offset": pa.int64(), "time": _TIME, "key": pa.binary(), "value": pa.binary(),
                    "headers": pa.binary()})  # fmt: skip
"""The columns of messages as Arrow."""


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
        return sections(self.data, self.header).values

    @property
    def key_column(self) -> Column | None:
        return sections(self.data, self.header).keys

    @property
    def header_column(self) -> Column | None:
        return sections(self.data, self.header).headers

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
        times = sections(self.data, self.header).times
        return np.full(self.count, self.header.earliest, np.int64) if times is None else times

    @property
    def offsets(self) -> Integers:
        offsets = sections(self.data, self.header).offsets if self.header.columns & OFFSETS else None
        return np.arange(self.first, self.first + self.count, dtype=np.int64) if offsets is None else offsets

    @property
    def runs(self) -> list[Run]:
        """The runs of producers in this frame, in order."""
        header = self.header
        if header.producer != SEVERAL:
            return [Run(header.producer, header.sequence, header.epoch, header.messages)]
        return [Run(*run) for run in sections(self.data, self.header).runs.tolist()]

    def to_arrow(self) -> pa.RecordBatch:
        """The messages as columns offset, time, key, value, headers; large ones are not copied."""
        parts, count, first = sections(self.data, self.header), self.count, self.first
        offsets = np.arange(first, first + count, dtype=np.int64) if parts.offsets is None else parts.offsets
        times = np.full(count, self.header.earliest, np.int64) if parts.times is None else parts.times
        columns = [
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(offsets)]),
            pa.Array.from_buffers(_TIME, count, [None, pa.py_buffer(times)]),
            pa.nulls(count, pa.binary()) if parts.keys is None else parts.keys.to_arrow(),
            parts.values.to_arrow(),
            pa.nulls(count, pa.binary()) if parts.headers is None else parts.headers.to_arrow(),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    # ---- other frames of it

    def at(self, base: int, durable: int = 0) -> Frame:
        """The same messages at the offset `base`."""
        header = self.header._replace(base=base, durable=durable)
        return Frame(memoryview(b"".join((header.pack(), self.data[HEADER_BYTES:]))), header)

    def numbered(self, producer: int, epoch: int, sequence: int) -> Frame:
        """The same messages, of this producer and from this number on."""
        header = self.header._replace(producer=producer, epoch=epoch, sequence=sequence)
        return Frame(memoryview(b"".join((header.pack(), self.data[HEADER_BYTES:]))), header)

    def slice(self, start: int, stop: int) -> Frame:
        """The messages at the places `start` to `stop`."""
        start, stop = max(start, 0), min(stop, self.count)
        if start == 0 and stop == self.count:
            return self
        if stop - start == 1 and single.can_cut(self.header):
            return Frame(*single.cut(self.data, self.header, start))
        parts = sections(self.data, self.header)
        return Frame(*assembled(
            parts.values.slice(start, stop),
            parts.keys and parts.keys.slice(start, stop),
            parts.headers and parts.headers.slice(start, stop),
            self.header.earliest if parts.times is None else parts.times[start:stop],
            cut_runs(self.runs, start, stop),
            self.first + start if parts.offsets is None else int(parts.offsets[start]),
            None if parts.offsets is None else parts.offsets[start:stop],
            self.header.durable,
        ))  # fmt: skip

    def take(self, mask: npt.NDArray[np.bool_]) -> Frame | None:
        """The messages whose place in `mask` is true, with their offsets; None if there are none."""
        if mask.all():
            return self
        if not mask.any():
            return None
        parts, offsets = sections(self.data, self.header), self.offsets[mask]
        runs = [Run(NOBODY, 0, 0, len(offsets))]
        return Frame(*assembled(parts.values.take(mask), parts.keys and parts.keys.take(mask),
                                parts.headers and parts.headers.take(mask), self.times[mask], runs, int(offsets[0]),
                                offsets, self.header.durable))  # fmt: skip

    def within(self, offset: int, most_bytes: int, most_messages: int | None = None) -> Frame:
        """The messages from `offset` on, at least one, whose values, keys and headers fit into `most_bytes`."""
        start = max(0, offset - self.first)
        stop = self.count if most_messages is None else min(self.count, start + max(1, most_messages))
        if stop - start > 1 and (self.bytes > most_bytes or start):
            parts = sections(self.data, self.header)
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
        if len(values) == 1 and keys is None and headers is None and type(values) is list and type(values[0]) is bytes:
            moment = time.time_ns() // 1000 if times is None else int(times[0])
            return Frame(*single.packed(values[0], moment, base, producer, epoch, sequence))
        stamps = time.time_ns() // 1000 if times is None else np.asarray(times, np.int64)
        value_column = column_of(values, "value")
        key_column = None if keys is None else column_of(keys, "key")
        header_column = None if headers is None else column_of(headers, "headers")
        if value_column.validity is not None:
            raise BadFrame("a message without a value", None, "give b'' for an empty one")
        check_sizes(value_column, key_column, header_column)
        runs = [Run(producer, sequence, epoch, len(values))]
        return Frame(*assembled(value_column, key_column, header_column, stamps, runs, base, None, 0))

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
        if all(single.is_single(frame.header) for frame in frames):
            return Frame.of_singles(frames, frames[0].first, frames[-1].header.durable)
        counts = [frame.count for frame in frames]
        parts = [sections(frame.data, frame.header) for frame in frames]
        values = joined_columns([part.values for part in parts], counts)
        keys = joined_columns([part.keys for part in parts], counts)
        headers = joined_columns([part.headers for part in parts], counts)
        runs = merged_runs([run for frame in frames for run in frame.runs])
        assert values is not None
        times: Integers | int = frames[0].header.earliest
        if any(frame.header.earliest != times or frame.header.latest != times for frame in frames):
            times = np.concatenate([frame.times for frame in frames])
        durable = frames[-1].header.durable
        return Frame(*assembled(values, keys, headers, times, runs, frames[0].first, None, durable))

    @staticmethod
    def of_singles(frames: Sequence[Frame], base: int, durable: int) -> Frame:
        """Join frames of one value each, wherever they were before, which is faster than `join` for many of them."""
        views = [frame.data for frame in frames]
        return Frame(*single.joined(views, [frame.header for frame in frames], base, durable))

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
        if not trusted and not (single.is_single(header) and single.is_sound(frame.data, header)):
            check_structure(frame.data, header)
        return frame

"""Frames of the log: what strangers send is refused or whole, and what we pack comes back."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import xxhash

from penstock.log import single
from penstock.log.errors import BadFrame
from penstock.log.frame import HEADER_BYTES, Frame
from penstock.log.headers import read_headers, write_headers
from penstock.log.layout import check_structure
from tests.fuzz.parser import Parser, pieces

_CHECKED = struct.calcsize("<4sHHIIIIIIiI")
"""Where the checksum of the body is in the header."""


def damaged_frames(data: bytes) -> None:
    for trusted in (False, True):
        try:
            frame = Frame.parse(data, trusted=trusted)
        except BadFrame:
            continue
        if not trusted:  # else a right checksum is taken for ours, and everything with it
            _look_at(frame)


def foreign_frames(data: bytes) -> None:
    """Any header and any body, with right checksums: a stranger can make those too."""
    if len(data) < HEADER_BYTES:
        return
    body = data[HEADER_BYTES:]
    start = data[:_CHECKED] + struct.pack("<Q", xxhash.xxh3_64_intdigest(body)) + data[_CHECKED + 8 : HEADER_BYTES - 8]
    whole = start + struct.pack("<Q", xxhash.xxh3_64_intdigest(start)) + body
    try:
        frame = Frame.parse(whole)
    except BadFrame:
        return
    if single.is_single(frame.header):
        check_structure(frame.data, frame.header)
    _look_at(frame)


def _look_at(frame: Frame) -> None:
    """Everything that a log does with a frame."""
    table = frame.to_arrow()
    table.validate(full=True)
    assert len(table) == frame.count > 0
    assert table["value"].to_pylist() == frame.values.to_pylist()
    assert table["offset"].to_pylist() == frame.offsets.tolist()
    assert frame.next == frame.offsets[-1] + 1
    assert sum(run.messages for run in frame.runs) == frame.count
    again = Frame.parse(frame.at(frame.first, 7).data)
    assert _content(again) == _content(frame)
    middle = frame.count // 2
    halves = [(start, stop) for start, stop in ((0, middle), (middle, frame.count)) if start < stop]
    cut = [Frame.parse(frame.slice(start, stop).data) for start, stop in halves]
    assert [row for part in cut for row in _content(part)] == _content(frame)
    mask = np.arange(frame.count) % 2 == 0
    taken = frame.take(mask)
    assert taken is not None
    assert _content(Frame.parse(taken.data))[0][:4] == _content(frame)[0][:4]
    assert frame.within(frame.first, 1).count >= 1


def _content(frame: Frame) -> list[tuple[Any, ...]]:
    producers = [(run.producer, run.epoch) for run in frame.runs for _ in range(run.messages)]
    columns = frame.values, frame.keys, frame.headers, frame.offsets, frame.times
    return list(zip(*(column.tolist() for column in columns), producers, strict=True))


def packed_messages(data: bytes) -> None:
    """Fast ways and plain ways make the same bytes. A message without a first byte of 1 has no key, of 2 no headers."""
    values = pieces(data)
    keys = [value[1:3] if value[:1] == b"\x01" else None for value in values]
    headers = [value[1:3] if value[:1] == b"\x02" else None for value in values]
    times = [len(value) for value in values]
    frame = Frame.pack(values, keys=keys, headers=headers, times=times, base=5, producer=9, epoch=1, sequence=3)
    found = Frame.parse(frame.data)
    assert found.values.to_pylist() == values
    assert found.keys.to_pylist() == keys
    assert found.headers.to_pylist() == headers
    assert found.times.tolist() == times
    _look_at(found)
    singles = [Frame.pack([value], times=[time], base=place, producer=9, sequence=place)
               for place, (value, time) in enumerate(zip(values, times, strict=True))]  # fmt: skip
    whole = Frame.pack(values, times=times, producer=9)
    assert bytes(Frame.join(singles).data) == bytes(whole.data)
    assert bytes(Frame.join([whole.slice(place, place + 1) for place in range(len(values))]).data) == bytes(whole.data)


def headers(data: bytes) -> None:
    found = read_headers(data)
    assert all(isinstance(name, str) and isinstance(value, str) for name, value in found.items())
    assert read_headers(write_headers(found)) == found


_FRAMES = [
    Frame.pack([b"value"], times=[1]),
    Frame.pack([b"", b"two", b"three"], times=[3, 1, 2], base=7, producer=5, epoch=1, sequence=9),
    Frame.pack([b"a", b"b"], keys=[b"k", None], headers=[None, b'{"a":"b"}'], times=[1, 1]),
    Frame.join([Frame.pack([b"a"], times=[1], producer=1), Frame.pack([b"b"], times=[2], base=1, producer=2)]),
]
_TAKEN = Frame.pack([b"a", b"b", b"c"], times=[1, 2, 3], base=10).take(np.array([True, False, True]))
_EDGES = [{"base": 2**63 - 1}, {"base": -1}, *({"producer": 5, "sequence": 2**63 - less} for less in (1, 2, 4))]
_FORGED = [_FRAMES[place].header._replace(**edge).pack() + bytes(_FRAMES[place].data[HEADER_BYTES:])
           for edge in _EDGES for place in (0, 1)]  # fmt: skip
_SEEDS = [bytes(frame.data) for frame in (*_FRAMES, _TAKEN) if frame is not None]
PARSERS = [
    Parser(damaged_frames, _SEEDS),
    Parser(foreign_frames, [*_SEEDS, *_FORGED]),
    Parser(packed_messages, [b"a\xfe\x01key\xfe\x02{}\xfe", b"", b"one", b"\xfe\xfe"]),
    Parser(headers, [b'{"a":"b"}', b'{"n":1,"o":{"x":[null]}}', b"[]", b'{"\\ud800":1}', b"\xff"]),
]

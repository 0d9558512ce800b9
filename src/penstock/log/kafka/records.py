"""Records: messages as Kafka has them, and back.

Value and key are as they are. A header `penstock`, the mark, says which offset and time the message has and who
produced it: a record whose mark is not about its own offset was not written there by this log. A message's own headers,
if any, are another one, `headers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.log.columns import column_of
from penstock.log.frame import NOBODY, Frame, Run
from penstock.log.header import LAST, merged_runs
from penstock.log.layout import assembled

MARK, HEADERS = "penstock", "headers"
SHORT = np.dtype([("offset", "<i8"), ("time", "<i8")])
LONG = np.dtype([*SHORT.descr, ("producer", "<i8"), ("sequence", "<i8"), ("epoch", "<i4")])
_REST = np.zeros(1, LONG)
_REST["producer"] = NOBODY
_NOBODY = _REST.tobytes()[SHORT.itemsize :]


class Record(NamedTuple):
    value: bytes
    key: bytes | None
    timestamp: int
    """Milliseconds, never zero, which Kafka's client would take for now."""
    headers: list[tuple[str, bytes]]


class Found(NamedTuple):
    """What was read from Kafka."""

    offset: int
    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes]] | None


def records_of(frame: Frame, start: int) -> Iterator[Record]:
    """The messages of a frame from the place `start` on."""
    count = frame.count - start
    values = frame.values[start:].to_pylist()
    keys = [None] * count if frame.key_column is None else frame.keys[start:].to_pylist()
    headers = [None] * count if frame.header_column is None else frame.headers[start:].to_pylist()
    marks, stamps = _marks(frame)[start:], np.maximum(frame.times[start:] // 1000, 1).tolist()
    size, packed = marks.dtype.itemsize, marks.tobytes()
    for place in range(count):
        mark = (MARK, packed[place * size : place * size + size])
        own = headers[place]
        yield Record(values[place], keys[place], stamps[place], [mark] if own is None else [mark, (HEADERS, own)])


def frame_of(found: Sequence[Found]) -> Frame | None:
    """One frame of the records that follow each other and are ours; None if the first is not."""
    ours = list(_ours(found))
    if not ours:
        return None
    marks = np.frombuffer(b"".join([mark for _, mark, _ in ours]), LONG)
    expected = found[0].offset + np.arange(len(marks))
    offsets = np.array([one.offset for one, _, _ in ours])
    right = (marks["offset"] == expected) & (offsets == expected) & _can_be(marks)
    count = len(marks) if right.all() else int(np.argmin(right))
    if count == 0:
        return None
    marks, ours = marks[:count], ours[:count]
    keys = [one.key for one, _, _ in ours]
    headers = [own for _, _, own in ours]
    return Frame(*assembled(
        column_of([one.value for one, _, _ in ours], "value"),
        None if all(key is None for key in keys) else column_of(keys, "key"),
        None if all(own is None for own in headers) else column_of(headers, "headers"),
        np.ascontiguousarray(marks["time"]), _runs(marks), found[0].offset, None, 0,
    ))  # fmt: skip


def _can_be(marks: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether a log of ours can have made each of them."""
    producers, numbers, epochs = marks["producer"], marks["sequence"], marks["epoch"]
    unnumbered = (producers == NOBODY) & (numbers == 0) & (epochs == 0)
    numbered = (producers >= 0) & (numbers >= 0) & (numbers < LAST) & (epochs >= 0)
    could: npt.NDArray[np.bool_] = unnumbered | numbered
    return could


def _ours(found: Sequence[Found]) -> Iterator[tuple[Found, bytes, bytes | None]]:
    """Records with a mark, until one has none."""
    for one in found:
        headers = dict(one.headers or ())
        mark = headers.get(MARK)
        if one.value is None or mark is None or len(mark) not in (SHORT.itemsize, LONG.itemsize):
            return
        yield one, mark if len(mark) == LONG.itemsize else mark + _NOBODY, headers.get(HEADERS)


def _marks(frame: Frame) -> npt.NDArray[Any]:
    runs = frame.runs
    numbered = any(run.producer != NOBODY for run in runs)
    marks = np.zeros(frame.count, LONG if numbered else SHORT)
    marks["offset"], marks["time"] = frame.offsets, frame.times
    place = 0
    for run in runs if numbered else ():
        part = marks[place : place + run.messages]
        part["producer"], part["epoch"] = run.producer, run.epoch
        part["sequence"] = 0 if run.producer == NOBODY else run.sequence + np.arange(run.messages)
        place += run.messages
    return marks


def _runs(marks: npt.NDArray[Any]) -> list[Run]:
    if (marks["producer"] == NOBODY).all():
        return [Run(NOBODY, 0, 0, len(marks))]
    singles = zip(marks["producer"].tolist(), marks["sequence"].tolist(), marks["epoch"].tolist(), strict=True)
    return merged_runs([Run(producer, sequence, epoch, 1) for producer, sequence, epoch in singles])

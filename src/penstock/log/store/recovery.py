"""Recovery: which frames of a segment can be read, and what is damaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from penstock.log.errors import BadFrame, Damaged
from penstock.log.frame import HEADER_BYTES, MAGIC, Frame, parse_header
from penstock.log.store.index import Index

_STRIDE = 8 << 20
_MAGIC = int.from_bytes(MAGIC, "little")


class Damage(NamedTuple):
    """Bytes from `position` to `end` of a segment that are no frames; `next` is the offset after them, if known."""

    position: int
    end: int
    first: int
    next: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Scan:
    index: Index
    damages: tuple[Damage, ...]
    durable: int
    """All offsets below it were durable once, as the readable frames say."""


def scan(view: memoryview, base: int, every: int, *, limit: int | None = None,
         see: Callable[[Frame], None] | None = None) -> Scan:  # fmt: skip
    """All frames of a segment from offset `base` to before `limit`, shown to `see`, and what is damaged."""
    index, durable = Index(base, every), base
    damages: list[Damage] = []
    position, expected = 0, base
    while position < len(view) and (limit is None or expected < limit):
        try:
            frame = frame_at(view, position, expected)
        except BadFrame as error:
            found = find_frame(view, position, expected)
            if found is None:
                damages.append(Damage(position, len(view), expected, None, error.what))
                break
            damages.append(Damage(position, found[0], expected, found[1].first, error.what))
            position, expected = found[0], found[1].first
            continue
        index.add(frame.header, position)
        durable = max(durable, frame.header.durable)
        if see is not None:
            see(frame)
        position, expected = position + frame.bytes, frame.next
    return Scan(index, tuple(damages), durable)


def frame_at(view: memoryview, position: int, expected: int | None) -> Frame:
    """The frame at `position`, which must begin with the offset `expected`, if one is."""
    frame = Frame.parse(view[position:], trusted=True)
    if expected is not None and frame.first != expected:
        raise BadFrame(f"a frame of offset {frame.first} where {expected} should be")
    return frame


def find_frame(view: memoryview, position: int, expected: int) -> tuple[int, Frame] | None:
    """Where the next frame is, from a damaged one at `position` on. Its offset is not below `expected`."""
    try:
        header = parse_header(view[position:])
    except BadFrame:
        return _search(view, position + 8, expected)
    if header.base > expected:
        found = _good(view, position, expected)
        if found is not None:
            return found
    # Only the body is damaged, so its length is known, and nothing in the body can be taken for a frame.
    return _search(view, position + header.length, expected)


def seek(view: memoryview, position: int, least: int, offset: int) -> int:
    """Where the frame with an offset is, or what is in its place, from the frame of offset `least` at `position` on.

    Damaged headers on the way hide nothing but their own messages: the next frame is searched for.
    """
    while position < len(view):
        try:
            header = parse_header(view[position:])
        except BadFrame:
            found = find_frame(view, position, least)
            if found is None or found[1].first > offset:
                return position
            position, least = found[0], found[1].first
            continue
        least = header.base + header.messages
        if least > offset:
            return position
        position += header.length
    return position


def damaged(path: Path, view: memoryview, position: int, offset: int, why: str, end: int | None) -> Damaged:
    """The error of who wants to read an offset, whose place has no frame of it; `end` is where the file should end."""
    found = find_frame(view, position, offset) if position < len(view) else None
    while found is not None and found[1].first <= offset:  # a copy of what should be here, somewhere else in the file
        found = _search(view, found[0] + 8, offset)
    after = found[1].first if found is not None else end
    after = after if after is not None and after > offset else None
    upto = "" if after is None or after == offset + 1 else f" to {after - 1}"
    skip = "see `penstock log check`" + ("" if after is None else f"; to go on behind it, read from {after}")
    return Damaged(f"offset {offset}{upto} cannot be read: {why}", f"{path} byte {position}", skip, after)


def _search(view: memoryview, start: int, expected: int) -> tuple[int, Frame] | None:
    for begin in range(start, len(view) - HEADER_BYTES + 1, _STRIDE):
        words = min(_STRIDE, len(view) - begin) // 8
        marks = np.frombuffer(view, np.uint32, words * 2, begin)[::2]
        for place in np.flatnonzero(marks == _MAGIC).tolist():
            found = _good(view, begin + 8 * place, expected)
            if found is not None:
                return found
    return None


def _good(view: memoryview, position: int, expected: int) -> tuple[int, Frame] | None:
    try:
        frame = Frame.parse(view[position:], trusted=True)
    except BadFrame:
        return None
    return (position, frame) if frame.first >= expected else None

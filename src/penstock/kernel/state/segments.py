"""Cut the rows of every key, in order, into groups, for all keys at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.kernel.state.keys import Flags, Numbers

OPEN, SIZE, PREDICATE, NEW_GROUP = 0, 1, 2, 3
_NO_ROW = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Segments:
    """Groups as ranges of rows, in order, each with the reason of its completion; OPEN if it is not complete."""

    starts: Numbers
    ends: Numbers
    reasons: npt.NDArray[np.int8]


def segments(
    key_starts: Numbers,
    weights: Numbers,
    sizes: Numbers | None = None,
    completes: Flags | None = None,
    changes: Flags | None = None,
) -> Segments:
    """Cut rows into groups.

    `weights` says how many messages a row stands for. `sizes` has, for every row, the size of a group that begins
    there. A row in `completes` ends its group; a row in `changes` begins another.
    """
    total = len(weights)
    key_ends = np.append(key_starts[1:], total)
    counted = np.cumsum(weights)
    next_complete = _next(completes, total)
    next_change = _next(changes, total)
    pieces: list[tuple[Numbers, Numbers, npt.NDArray[np.int8]]] = []
    begin, limit = key_starts, key_ends
    while len(begin):
        ends, reasons = limit.copy(), np.zeros(len(begin), np.int8)
        if changes is not None:
            after = next_change[np.minimum(begin + 1, total)]
            cut = after < ends
            ends, reasons = np.where(cut, after, ends), np.where(cut, NEW_GROUP, reasons)
        if completes is not None:
            last = next_complete[begin]
            cut = last < ends
            ends, reasons = np.where(cut, last + 1, ends), np.where(cut, PREDICATE, reasons)
        if sizes is not None:
            goal = counted[begin] - weights[begin] + sizes[begin]
            last = np.searchsorted(counted, goal)
            cut = last < ends
            ends, reasons = np.where(cut, last + 1, ends), np.where(cut, SIZE, reasons)
        pieces.append((begin, ends, reasons.astype(np.int8)))
        more = ends < limit
        begin, limit = ends[more], limit[more]
    starts, ends, reasons = (np.concatenate(part) for part in zip(*pieces, strict=True)) if pieces else _nothing()
    order = np.argsort(starts, kind="stable")
    return Segments(starts[order], ends[order], reasons[order])


def _next(flags: Flags | None, total: int) -> Numbers:
    """The first flagged row from each row on."""
    if flags is None:
        return np.empty(0, np.int64)
    marked = np.where(flags, np.arange(total), _NO_ROW)
    return np.append(np.minimum.accumulate(marked[::-1])[::-1], _NO_ROW)


def _nothing() -> tuple[Numbers, Numbers, npt.NDArray[np.int8]]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8)

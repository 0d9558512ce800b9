"""Keys as pairs of 64-bit numbers: sorted, looked up and grouped a whole column at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HIGH, LOW = "key_high", "key_low"
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Keys:
    """A column of keys. Almost always `high` alone tells two of them apart; `low` makes sure."""

    high: Numbers
    low: Numbers

    @classmethod
    def of(cls, table: pa.Table | pa.RecordBatch) -> Keys:
        return cls(_numbers(table.column(HIGH)), _numbers(table.column(LOW)))

    @classmethod
    def none(cls) -> Keys:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.high)

    def __getitem__(self, chosen: Any) -> Keys:
        return Keys(self.high[chosen], self.low[chosen])

    def starts(self) -> Numbers:
        """Where each key begins, in a column where equal keys stand together."""
        if not len(self):
            return np.empty(0, np.int64)
        changed = (self.high[1:] != self.high[:-1]) | (self.low[1:] != self.low[:-1])
        return np.concatenate(([0], np.flatnonzero(changed) + 1))

    def order(self) -> Numbers:
        """Positions in the order of the keys; equal keys stay in the order they have."""
        positions = np.argsort(self.high, kind="stable")
        ordered = self[positions]
        same = (ordered.high[1:] == ordered.high[:-1]) & (ordered.low[1:] != ordered.low[:-1])
        return np.lexsort((self.low, self.high)) if same.any() else positions

    def find(self, wanted: Keys) -> Numbers:
        """For each wanted key its first position in this sorted column, or -1."""
        found = np.searchsorted(self.high, wanted.high)
        if not len(self):
            return np.full(len(wanted), -1)
        while True:
            inside = np.minimum(found, len(self) - 1)
            same_high = (found < len(self)) & (self.high[inside] == wanted.high)
            wrong = same_high & (self.low[inside] != wanted.low)
            if not wrong.any():
                return np.where(same_high, found, -1)
            found = found + wrong

    def joined(self, other: Keys) -> Keys:
        return Keys(np.concatenate((self.high, other.high)), np.concatenate((self.low, other.low)))

    def distinct(self) -> Keys:
        """Every key once, sorted."""
        ordered = self[self.order()]
        return ordered[ordered.starts()]


def _numbers(column: pa.Array | pa.ChunkedArray) -> Numbers:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks) if flat.num_chunks else pa.array([], pa.int64())
    numbers: Numbers = flat.to_numpy(zero_copy_only=flat.null_count == 0)
    return numbers


def ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """The positions start, start + 1, ... of every range, one after the other."""
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.int64)
    ends = np.cumsum(lengths)
    return np.arange(total) - np.repeat(ends - lengths, lengths) + np.repeat(starts, lengths)

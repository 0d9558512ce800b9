"""The task that reads a bucket of messages, puts the bodies of each group together and does what comes after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from penstock.spark.direct.buckets import Bucket, Numbers
from penstock.spark.direct.gathering import Gathering
from penstock.spark.direct.rows import Rows, Visit
from penstock.spark.direct.tally import Tally
from penstock.spark.direct.task import batch_of, note_of
from penstock.spark.frame import DEAD
from penstock.spark.read.rows import settle
from penstock.spark.write.task import TaskWriter

_PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class GroupTask:
    """The function that Spark runs for every bucket; pickled to the workers."""

    gathering: Gathering
    start: int
    paths: Sequence[str]
    visits: Sequence[Visit]
    writer: TaskWriter

    def __call__(self, numbers: Iterable[int]) -> Iterator[Row]:
        settle()
        for manifest in self.writer(self._written(numbers)):
            yield from (Row(**entry) for entry in manifest.to_pylist())

    def _written(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        tally = Tally()
        for number in numbers:
            for bodies in self._groups(Bucket.read(self.paths, number)):
                rows = Rows(None, np.arange(len(bodies)), None, np.full(len(bodies), self.start, np.int32),
                            np.arange(len(bodies)))  # fmt: skip
                for visit in self.visits:
                    visit(rows)
                tally.groups += len(bodies)
                tally.count(rows)
                going = np.isin(rows.at, [place for place in self.writer.targets if place != DEAD])
                if going.any():
                    made = bodies if going.all() and len(going) == len(bodies) else bodies.take(rows.body[going])
                    yield batch_of(rows.at[going], made, np.full(len(made), True))
        yield note_of(tally)

    def _groups(self, bucket: Bucket) -> Iterator[pa.Array]:
        """The bodies of the groups, some at a time."""
        order, starts = cut(bucket.keys, self.gathering.size)
        ends = np.append(starts[1:], len(order))
        total = np.append(0, np.cumsum(bucket.texts.lengths[order]))
        first = 0
        while first < len(starts):
            begin = starts[first]
            last = max(first + 1, int(np.searchsorted(total[ends], total[begin] + _PIECE_BYTES, side="right")))
            chosen = order[begin : ends[last - 1]]
            yield bucket.texts.join(chosen, ends[first:last] - begin, self.gathering.before, self.gathering.after)
            first = last


def cut(keys: Sequence[pa.Array], size: int | None) -> tuple[Numbers, Numbers]:
    """Messages in the order of their keys, and where in it each group begins: after `size` messages of a key."""
    codes = _codes(keys)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = np.ones(len(ordered), bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    if size is not None:
        starts = np.flatnonzero(begins)
        within = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
        begins = within % size == 0
    return order, np.flatnonzero(begins)


def _codes(keys: Sequence[pa.Array]) -> Numbers:
    """A number for each message: the same for the same keys."""
    codes: Numbers | None = None
    for key in keys:
        if codes is None and pa.types.is_integer(key.type):
            codes = key.to_numpy()
            continue
        encoded = key.dictionary_encode()
        found = encoded.indices.to_numpy().astype(np.int64)
        if codes is None:
            codes = found
        else:
            _, before = np.unique(codes, return_inverse=True)
            codes = before * len(encoded.dictionary) + found
    assert codes is not None
    return codes

"""Sources whose partitions have offsets: how far a stream has come in each, and ranges of offsets for tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from penstock.endpoints.kafka import EARLIEST
from penstock.errors import BadEndpoint
from penstock.log.records import Ends
from penstock.spark.read import beginnings
from penstock.spark.read.pieces import Pieces

ROWS_PER_TASK = 250_000
_MESSAGE_BYTES = 256
"""A guess at the size of a message, to divide ranges of offsets among tasks as chunks of files are."""
TEXTS = pa.map_(pa.string(), pa.string())
TIMES = pa.timestamp("us", "UTC")
Offsets = dict[str, int]


@dataclass(frozen=True)
class Range:
    """Neighbouring messages of one partition, by their offsets."""

    partition: int
    first: int
    stop: int
    identity: str = ""
    """The identity of the topic, which tells it from a later topic of the same name."""

    @property
    def size(self) -> int:
        return (self.stop - self.first) * _MESSAGE_BYTES


class OffsetStream:
    """A topic as a stream; Spark's offset is how far every partition was read.

    A file notes where the first batch begins; `start` is how the app asks for that place.
    """

    start = EARLIEST

    def __init__(
        self, pieces: Pieces[Range], topic: str, note: str, rows_per_batch: int, parts: int
    ) -> None:
        self.pieces = pieces
        self.topic, self.note, self.rows_per_batch, self.parts = topic, note, rows_per_batch, parts
        self.target: Offsets | None = None
        self.identity = ""

    def ends(self) -> dict[str, Ends]:
        """The first and the next offset of every partition now, by its number."""
        raise NotImplementedError

    def beginning(self) -> Offsets:
        """Where to begin if nothing was read yet."""
        return {number: one.first for number, one in self.ends().items()}

    def initialOffset(self) -> Offsets:
        """Where the first batch begins; noted, so that the answer is always the same."""
        known = beginnings.noted(self.note)
        if known is None:
            known = beginnings.Beginning(self.beginning(), self.topic, self.start, self.identity)
            beginnings.note(self.note, known)
        return known.offsets

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self._ends()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        ends = self._ends() if self.target is None else self.target
        self._check(start, ends)
        start = dict.fromkeys(ends, 0) | start
        if isinstance(limit, ReadAllAvailable):
            return ends
        return limited(start, ends, getattr(limit, "max_rows", self.rows_per_batch))

    def _ends(self) -> Offsets:
        return {number: one.next for number, one in self.ends().items()}

    def _check(self, start: Offsets, ends: Offsets) -> None:
        for number, offset in start.items():
            if ends.get(number, -1) < offset:
                there = f"it ends at {ends[number]}" if number in ends else "it is not there any more"
                raise BadEndpoint(
                    f"the stream has read partition {number} of topic {self.topic!r} up to {offset}, and {there}",
                    fix="this is another topic than before: restore it, or start with a new checkpoint",
                )

    def between(self, start: Offsets, end: Offsets) -> list[Range]:
        """The ranges of a batch; a partition that is new since `start` is read from its beginning."""
        for number, offset in start.items():
            if end.get(number, -1) < offset:
                raise BadEndpoint(f"a batch reads partition {number} of topic {self.topic!r} from {offset} to"
                                  f" {end.get(number, 'nowhere')}",
                                  fix="restore the checkpoint, or start with a new one")  # fmt: skip
        return ranges(dict.fromkeys(end, 0) | start, end, self.parts)



def ranges(start: Mapping[str, int], end: Mapping[str, int], parts: int) -> list[Range]:
    """Everything from `start` to `end`, in ranges for about so many tasks; one empty range if there is nothing."""
    total = sum(end[number] - start[number] for number in end)
    size = max(min(-(-total // max(parts, 1)), ROWS_PER_TASK), 1000)
    found = []
    for number in sorted(end, key=int):
        rows = end[number] - start[number]
        pieces = -(-rows // size)
        cuts = [start[number] + rows * cut // pieces for cut in range(pieces)] if pieces else []
        stops = [*cuts[1:], end[number]]
        found += [Range(int(number), first, stop) for first, stop in zip(cuts, stops, strict=False)]
    return found or [Range(0, 0, 0)]


def limited(start: Mapping[str, int], ends: Mapping[str, int], rows: int) -> Offsets:
    """The offsets after at most so many more rows, equally many of every partition as long as it has them."""
    found, left = dict(start), rows
    behind = sorted(start, key=lambda number: ends[number] - start[number])
    for place, number in enumerate(behind):
        share = left // (len(behind) - place)
        taken = min(ends[number] - start[number], share)
        found[number] += taken
        left -= taken
    return found

"""A stream whose micro-batches are run by the tasks that read them.

Spark keeps the position and says when a batch begins, but it hands no message on: what a batch has is what its sources
have between the offsets in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.spark.direct.run import DirectRun
from penstock.spark.read.pieces import PieceStream, Sized
from penstock.spark.write.intent import Intent, Journal
from penstock.spark.write.staging import Staging


class DirectStream:
    def __init__(self, run: DirectRun, sources: Sequence[PieceStream], journal: Journal) -> None:
        self.run, self.sources, self.journal = run, sources, journal

    def compute(self, number: int, staging: Staging) -> tuple[Intent, int]:
        return self.run.compute(self._pieces(number), staging, timed=True)

    def _pieces(self, number: int) -> list[Sequence[Sized]]:
        ends = self.journal.reached(number)
        starts = self.journal.reached(number - 1) if number else [None] * len(ends)
        return [
            [] if end is None else source.between(source.initialOffset() if start is None else start, end)
            for source, start, end in zip(self.sources, starts, ends, strict=True)
        ]

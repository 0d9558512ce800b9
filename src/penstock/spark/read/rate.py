"""Messages made at a steady rate: ranges of numbers become tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from penstock.endpoints.simple import Rate
from penstock.kernel.block import Arrived
from penstock.plan.plan import Entry
from penstock.spark.read.offsets import Range, ranges
from penstock.spark.read.pieces import ROWS_AT_ONCE

_TOPIC, _PARTITION = "rate", 0


class RatePieces:
    def __init__(self, source: Rate) -> None:
        self.source = source

    def found(self, cores: int) -> list[Range]:
        return numbers(0, self.source.count, cores)

    def blocks(self, chosen: Range) -> Iterator[Arrived]:
        for start in range(chosen.first, chosen.stop, ROWS_AT_ONCE):
            some = range(start, min(start + ROWS_AT_ONCE, chosen.stop))
            bodies = pa.array([self.source.message(number) for number in some], pa.binary())
            yield Arrived(bodies, _TOPIC, _PARTITION, np.array(some))


def numbers(first: int, stop: int, parts: int) -> list[Range]:
    name = str(_PARTITION)
    return ranges({name: first}, {name: stop}, parts)


class RateStream:
    """As many messages as the seconds since the first start allow; the start is part of the offset."""

    def __init__(self, entry: Entry, rows_per_batch: int, cores: int) -> None:
        assert isinstance(entry.source, Rate)
        self.source, self.pieces = entry.source, RatePieces(entry.source)
        self.rows_per_batch, self.cores = rows_per_batch, cores
        self.target: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {"started": time.time(), "rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.source.count

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        due = int((time.time() - start["started"]) * self.source.per_second)
        rows = due if self.target is None else self.target
        if not isinstance(limit, ReadAllAvailable):
            rows = min(rows, start["rows"] + self.rows_per_batch)
        return {"started": start["started"], "rows": max(rows, start["rows"])}

    def between(self, start: dict[str, Any], end: dict[str, Any]) -> list[Range]:
        return numbers(start["rows"], end["rows"], self.cores)

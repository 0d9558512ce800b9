"""Batches of messages for the algorithms of state, without Spark: the rows that a task would get."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.envelope import AT, COUNT, ID, ORDER, ORDERS, TIME
from penstock.kernel.state.algorithm import Algorithm, Moment
from penstock.kernel.state.keys import HIGH, LOW
from penstock.kernel.state.rows import COMPLETES, KEY, SEQUENCE, Fates
from penstock.kernel.state.store import Run
from penstock.kernel.state.visit import Visit

HERE, FILTERED = 0, -2
FATES = Fates("r", "step", HERE, FILTERED)
VALUE = pa.field("s0", pa.struct([("k", pa.string()), ("v", pa.int64()), ("done", pa.bool_())]))
CARRIED = pa.schema([
    (ID, pa.string()), (TIME, pa.timestamp("us", "UTC")), (COUNT, pa.int64()), (ORDER, ORDERS),
])  # fmt: skip
ROWS = pa.schema([
    (HIGH, pa.int64()), (LOW, pa.int64()), (KEY, pa.string()), (AT, pa.int32()),
    (COMPLETES, pa.bool_()), (SEQUENCE, pa.int64()), *CARRIED, VALUE,
])  # fmt: skip

Body = dict[str, Any]


@dataclass
class Bench:
    """One bucket, batch after batch."""

    algorithm: Algorithm
    directory: Path
    runs: list[Run] = field(default_factory=list)
    out: list[Body] = field(default_factory=list)
    held: int = 0
    copies: int = 0
    offset: int = 0
    number: int = 0

    def batch(self, now: float, bodies: list[Body], stops: bool = False) -> None:
        moment = Moment(round(now * 1_000_000), self.number, stops)
        visit = Visit("r.step", 0, self.algorithm, self.runs, str(self.directory), moment)
        rows = list(self._rows(bodies))
        rows.sort(key=lambda row: (row[HIGH], row[LOW], row[ORDER]["offset"]))
        for table in visit.process(pa.Table.from_pylist(rows, ROWS)):
            self.out += table.to_pylist()
        note = visit.note()
        self.held += visit.held
        self.copies -= visit.merged
        if note is not None:
            self.runs = [Run(*run) for run in note["runs"]]
        self.number += 1

    def _rows(self, bodies: list[Body]) -> Iterator[Body]:
        for body in bodies:
            digest = hashlib.sha256(body["k"].encode()).digest()
            high, low = (int.from_bytes(digest[start : start + 8], "big", signed=True) for start in (0, 8))
            order = {"source": 0, "topic": "r", "partition": 0, "offset": self.offset, "path": []}
            yield {
                HIGH: high, LOW: low, KEY: body["k"], AT: HERE, COMPLETES: body["done"],
                SEQUENCE: body["v"], ID: f"r/0/{self.offset}", ORDER: order, "s0": body,
            }  # fmt: skip
            self.offset += 1

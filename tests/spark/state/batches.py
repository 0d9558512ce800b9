"""Batches of messages for the algorithms of state, without Spark: the rows that a task would get."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.spark import frame
from penstock.spark.state.keys import HIGH, LOW
from penstock.spark.state.rows import COMPLETES, KEY, SEQUENCE, Fates
from penstock.spark.state.store import Run
from penstock.spark.state.task import Algorithm, Moment, StateTask, _Visit

HERE, FILTERED = 0, -2
FATES = Fates("r", "step", HERE, FILTERED)
ORDER = pa.struct([("source", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()),
                   ("offset", pa.int64()), ("path", pa.list_(pa.int32()))])  # fmt: skip
VALUE = pa.field("s0", pa.struct([("k", pa.string()), ("v", pa.int64()), ("done", pa.bool_())]))
CARRIED = pa.schema([
    (frame.ID, pa.string()), (frame.TIME, pa.timestamp("us", "UTC")), (frame.COUNT, pa.int64()), (frame.ORDER, ORDER),
])  # fmt: skip
ROWS = pa.schema([
    (HIGH, pa.int64()), (LOW, pa.int64()), (KEY, pa.string()), (frame.AT, pa.int32()),
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
        leaving = pa.schema([(frame.AT, pa.int32())])
        task = StateTask("r.step", HERE, self.algorithm, {0: self.runs}, str(self.directory), moment, ROWS, leaving)
        visit = _Visit(task, 0)
        rows = list(self._rows(bodies))
        rows.sort(key=lambda row: (row[HIGH], row[LOW], row[frame.ORDER]["offset"]))
        for table in visit.process(pa.Table.from_pylist(rows, ROWS)):
            self.out += table.to_pylist()
        note = visit.note()
        self.held += visit.held
        self.copies -= visit.merged
        if note.num_rows:
            self.runs = visit.bucket.runs if not visit.deltas else self._published(note)
        self.number += 1

    def _published(self, note: pa.Table) -> list[Run]:
        import json

        return [Run(*run) for run in json.loads(note.column(frame.BODY)[0].as_py())["runs"]]

    def _rows(self, bodies: list[Body]) -> Iterator[Body]:
        for body in bodies:
            digest = hashlib.sha256(body["k"].encode()).digest()
            high, low = (int.from_bytes(digest[start : start + 8], "big", signed=True) for start in (0, 8))
            order = {"source": 0, "topic": "r", "partition": 0, "offset": self.offset, "path": []}
            yield {
                HIGH: high, LOW: low, KEY: body["k"], frame.AT: HERE, COMPLETES: body["done"],
                SEQUENCE: body["v"], frame.ID: f"r/0/{self.offset}", frame.ORDER: order, "s0": body,
            }  # fmt: skip
            self.offset += 1

"""The task that reads a chunk of a file and does all that an app does with its messages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from penstock.errors import BadEndpoint
from penstock.formats import Malformed
from penstock.plan.plan import Entry
from penstock.reference.run import DECODE
from penstock.spark.decode import reads_nothing
from penstock.spark.direct.rows import Rows, Visit
from penstock.spark.frame import AT, BODY, DEAD, NOTE
from penstock.spark.read.files import UNREADABLE, FilesReader
from penstock.spark.read.lines import Chunk
from penstock.spark.read.rows import settle
from penstock.spark.write.encode import META, WRITTEN
from penstock.spark.write.outlets import Target
from penstock.spark.write.staging import Staging
from penstock.spark.write.task import TaskWriter

_ERROR = pa.struct([(name, pa.string()) for name in ("route", "step", "error", "reason")])
_KNOWN = pa.struct([
    ("id", pa.string()), ("headers", pa.map_(pa.string(), pa.string())),
    ("attachments", pa.map_(pa.string(), pa.binary())), ("topic", pa.string()), ("partition", pa.int32()),
    ("offset", pa.int64()), ("time", pa.timestamp("us", "UTC")), ("parent", pa.string()), ("index", pa.int64()),
    ("count", pa.int64()), ("error", _ERROR), ("attempt", pa.int32()), ("fields", pa.string()),
])  # fmt: skip
_BATCH = pa.schema([(AT, pa.int32()), (BODY, pa.binary()), (WRITTEN, pa.bool_()), (META, _KNOWN)])


class Reader:
    """One source: how its messages are read, decoded and written anew."""

    def __init__(self, entry: Entry, start: int) -> None:
        self.files = FilesReader(entry)
        self.route, self.start = entry.route, start
        self.parsed, self.format = entry.parsed, entry.format
        self.decodes, self.written = not reads_nothing(entry), entry.written


@dataclass
class Tally:
    """What a task has seen: messages by their last place, by the bits of steps, and bad ones by route."""

    received: int = 0
    places: Counter[int] = field(default_factory=Counter)
    bits: Counter[int] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)

    def note(self) -> str:
        return json.dumps(vars(self))

    def __iadd__(self, note: Mapping[str, Any]) -> Tally:
        self.received += note["received"]
        self.places.update({int(place): count for place, count in note["places"].items()})
        self.bits.update({int(bit): count for bit, count in note["bits"].items()})
        self.bad.update(note["bad"])
        return self


@dataclass(frozen=True)
class DirectTask:
    """The function that Spark runs for every share of the chunks; pickled to the workers."""

    readers: Sequence[Reader]
    shares: Sequence[Sequence[tuple[int, Chunk]]]
    visits: Sequence[Visit]
    targets: Mapping[int, Target]
    staging: Staging
    time: datetime

    def __call__(self, numbers: Iterable[int]) -> Iterator[Row]:
        settle()
        for manifest in TaskWriter(self.targets, self.staging)(self._written(numbers)):
            yield from (Row(**entry) for entry in manifest.to_pylist())

    def _written(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """What goes to sinks, and at the end the counts."""
        tally = Tally()
        for number in numbers:
            for reader, chunk in self.shares[number]:
                yield from self._chunk(self.readers[reader], chunk, tally)
        yield _batch(np.array([NOTE], np.int32), pa.array([tally.note().encode()]), np.array([False]))

    def _chunk(self, reader: Reader, chunk: Chunk, tally: Tally) -> Iterator[pa.RecordBatch]:
        offset = 0
        try:
            for bodies in reader.files.bodies(chunk):
                yield from self._block(reader, chunk, bodies, offset, tally)
                offset += len(bodies)
        except UNREADABLE as error:
            raise BadEndpoint(f"cannot read {chunk.path}: {error}") from None

    def _block(
        self, reader: Reader, chunk: Chunk, bodies: pa.Array, offset: int, tally: Tally
    ) -> Iterator[pa.RecordBatch]:
        decoded, failures = reader.format.decode_batch(bodies, reader.parsed) if reader.decodes else (None, [])
        written = reader.written.write(decoded) if reader.written else None
        parts = written if reader.written and reader.written.parted else None
        rows = Rows(decoded, offset + np.arange(len(bodies)), parts, np.full(len(bodies), reader.start, np.int32),
                    np.arange(len(bodies)))  # fmt: skip
        rows.at[[index for index, _ in failures]] = DEAD
        for visit in self.visits:
            visit(rows)
        self._count(rows, tally, len(bodies), reader.route, len(failures))
        going = np.isin(rows.at, [place for place in self.targets if place != DEAD])
        if going.any():
            made = _made(rows, bodies, written, going)
            yield _batch(rows.at[going], made, np.full(len(made), written is not None))
        if failures and DEAD in self.targets:
            yield self._dead(reader, chunk, bodies, offset, failures)

    def _count(self, rows: Rows, tally: Tally, received: int, route: str, bad: int) -> None:
        tally.received += received
        tally.bits.update(rows.bits)
        if bad:
            tally.bad[route] += bad
        lowest = int(rows.at.min()) if len(rows.at) else 0
        counts = np.bincount(rows.at - lowest)
        tally.places.update({lowest + int(place): int(counts[place]) for place in np.flatnonzero(counts)})

    def _dead(
        self, reader: Reader, chunk: Chunk, bodies: pa.Array, offset: int, failures: list[tuple[int, Malformed]]
    ) -> pa.RecordBatch:
        known = [
            {
                "id": f"{chunk.topic}/{chunk.number}/{offset + index}", "topic": chunk.topic,
                "partition": chunk.number, "offset": offset + index, "time": self.time, "attempt": 1,
                "error": {"route": reader.route, "step": DECODE, "error": bad.error, "reason": bad.reason},
            }
            for index, bad in failures
        ]  # fmt: skip
        chosen = bodies.take(pa.array([index for index, _ in failures]))
        return _batch(np.full(len(known), DEAD, np.int32), chosen, np.full(len(known), False), pa.array(known, _KNOWN))


def _made(rows: Rows, bodies: pa.Array, written: pa.Array | None, going: Any) -> pa.Array:
    """The bodies of the rows that go to a sink."""
    if rows.part is not None and written is not None:
        return written.values.take(pa.array(rows.part[going]))
    chosen = bodies if written is None else written
    return chosen if len(chosen) == len(going) and going.all() else chosen.take(pa.array(rows.body[going]))


def _batch(at: Any, bodies: pa.Array, written: Any, known: pa.Array | None = None) -> pa.RecordBatch:
    meta = pa.nulls(len(bodies), _KNOWN) if known is None else known
    return pa.RecordBatch.from_arrays([pa.array(at), bodies, pa.array(written), meta], schema=_BATCH)

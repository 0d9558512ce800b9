"""The task that reads pieces of sources and does all that an app does with their messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from penstock.patterns.key import INVALID_KEY, NO_VALUE
from penstock.plan.plan import Entry
from penstock.reference.run import DECODE
from penstock.spark.decode import reads_nothing
from penstock.spark.direct.buckets import Gathered
from penstock.spark.direct.copies import Copier, Decoded
from penstock.spark.direct.gathering import Gathering
from penstock.spark.direct.rows import GATHERED, Numbers, Rows, Visit
from penstock.spark.direct.tally import Death, Tally
from penstock.spark.frame import AT, BODY, DEAD, NOTE
from penstock.spark.read.arrive import pieces_of
from penstock.spark.read.pieces import Block, Sized
from penstock.spark.read.rows import settle
from penstock.spark.write.encode import META, WRITTEN
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

    def __init__(self, entry: Entry, start: int, copier: Copier | None = None) -> None:
        self.pieces = pieces_of(entry)
        self.route, self.start, self.copier = entry.route, start, copier
        self.parsed, self.format = entry.parsed, entry.format
        self.decodes, self.written = not reads_nothing(entry), entry.written

    def decode(self, bodies: pa.Array) -> tuple[Decoded, pa.Array | None]:
        """What steps need of the bodies, and what goes on instead of them, or is gathered."""
        if self.copier is not None:
            return self.copier(bodies)
        decoded, failures = self.format.decode_batch(bodies, self.parsed) if self.decodes else (None, [])
        return (decoded, failures), self.written.write(decoded) if self.written else None


@dataclass(eq=False)
class DirectTask:
    """The function that Spark runs for every share of the pieces; pickled to the workers.

    `time` is that of messages whose source gives none; `timed` asks for the times of those that come to each place.
    """

    readers: Sequence[Reader]
    shares: Sequence[Sequence[tuple[int, Sized]]]
    visits: Sequence[Visit]
    writer: TaskWriter
    time: datetime
    timed: bool = False
    gathering: Gathering | None = None
    buckets: int = 1

    def __call__(self, numbers: Iterable[int]) -> Iterator[Row]:
        settle()
        for manifest in self.writer(self._written(numbers)):
            yield from (Row(**entry) for entry in manifest.to_pylist())

    def _written(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """What goes to sinks, and at the end the counts."""
        tally, gathered = Tally(), Gathered(self.writer.staging.scratch, self.buckets)
        for number in numbers:
            for chosen, piece in self.shares[number]:
                reader = self.readers[chosen]
                for block in reader.pieces.blocks(piece):
                    yield from self._block(reader, block, tally, gathered)
        tally.gathered += filter(None, [gathered.close()])
        yield note_of(tally)

    def _block(self, reader: Reader, block: Block, tally: Tally, gathered: Gathered) -> Iterator[pa.RecordBatch]:
        bodies = block.bodies
        (decoded, failures), made = reader.decode(bodies)
        written = made if reader.written else None
        parts = written if reader.written and reader.written.parted else None
        rows = Rows(decoded, block.offsets, parts, np.full(len(bodies), reader.start, np.int32),
                    np.arange(len(bodies)), times=self._times(block))  # fmt: skip
        rows.at[[index for index, _ in failures]] = DEAD
        for visit in self.visits:
            visit(rows)
        dead = [(index, reader.route, DECODE, bad.error, bad.reason) for index, bad in failures]
        if self.gathering is not None and rows.keyless is not None:
            assert made is not None
            _gather(rows, made, gathered)
            stage, keyless = self.gathering.stage, rows.keyless[rows.at[rows.keyless] == DEAD]
            dead += [(index, stage.route, stage.node.name, INVALID_KEY, NO_VALUE) for index in keyless.tolist()]
        tally.received += len(bodies)
        tally.count(rows)
        tally.bury(dead, rows.times)
        going = np.isin(rows.at, [place for place in self.writer.targets if place != DEAD])
        if going.any():
            out = _made(rows, bodies, written, going)
            yield batch_of(rows.at[going], out, np.full(len(out), written is not None))
        if dead and DEAD in self.writer.targets:
            yield _dead(block, sorted(dead), self.time)

    def _times(self, block: Block) -> Numbers | None:
        """In seconds since 1970; not a number where none is known."""
        if not self.timed:
            return None
        if block.times is None:
            return np.full(len(block.bodies), self.time.timestamp())
        seconds: Numbers = block.times.cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6
        return seconds


def _gather(rows: Rows, members: pa.Array, gathered: Gathered) -> None:
    """Messages that wait for others of their group go to the files of the second job."""
    keys, waiting = rows.keys, rows.at == GATHERED
    if not waiting.all():
        chosen = pa.array(waiting)
        members, keys = members.filter(chosen), [key.filter(chosen) for key in keys]
    if len(members):
        gathered.add(keys, members)


def _dead(block: Block, dead: Sequence[Death], time: datetime) -> pa.RecordBatch:
    chosen = pa.array([index for index, *_ in dead])
    offsets = block.offsets[chosen.to_numpy()].tolist()
    times = [time] * len(dead) if block.times is None else block.times.take(chosen).to_pylist()
    headers = [None] * len(dead) if block.headers is None else block.headers.take(chosen).to_pylist()
    known = [
        {
            "id": f"{block.topic}/{block.partition}/{offset}", "topic": block.topic, "partition": block.partition,
            "offset": offset, "time": when, "headers": given, "attempt": 1,
            "error": {"route": route, "step": step, "error": error, "reason": reason},
        }
        for (_, route, step, error, reason), offset, when, given in zip(dead, offsets, times, headers, strict=True)
    ]  # fmt: skip
    return batch_of(np.full(len(known), DEAD, np.int32), block.bodies.take(chosen), np.full(len(known), False),
                    pa.array(known, _KNOWN))  # fmt: skip


def _made(rows: Rows, bodies: pa.Array, written: pa.Array | None, going: Any) -> pa.Array:
    """The bodies of the rows that go to a sink."""
    if rows.part is not None and written is not None:
        chosen, places = written.values, rows.part
    else:
        chosen, places = bodies if written is None else written, rows.body
    return chosen if len(chosen) == len(going) and going.all() else chosen.take(pa.array(places[going]))


def batch_of(at: Numbers, bodies: pa.Array, written: Numbers, known: pa.Array | None = None) -> pa.RecordBatch:
    meta = pa.nulls(len(bodies), _KNOWN) if known is None else known
    return pa.RecordBatch.from_arrays([pa.array(at), bodies, pa.array(written), meta], schema=_BATCH)


def note_of(tally: Tally) -> pa.RecordBatch:
    """What a task tells the driver."""
    return batch_of(np.array([NOTE], np.int32), pa.array([tally.note().encode()]), np.array([False]))

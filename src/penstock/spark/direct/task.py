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
from penstock.patterns.key import INVALID_KEY, NO_VALUE
from penstock.plan.plan import Entry
from penstock.reference.run import DECODE
from penstock.spark.decode import reads_nothing
from penstock.spark.direct.buckets import Gathered
from penstock.spark.direct.gathering import Gathering
from penstock.spark.direct.rows import GATHERED, Numbers, Rows, Visit
from penstock.spark.frame import AT, BODY, DEAD, NOTE
from penstock.spark.read.files import UNREADABLE, FileBodies
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
        self.files = FileBodies(entry)
        self.route, self.start = entry.route, start
        self.parsed, self.format = entry.parsed, entry.format
        self.decodes, self.written = not reads_nothing(entry), entry.written


@dataclass
class Tally:
    """What a task has seen: messages by their last place, by the bits of steps, and bad ones by the step they died at.

    `groups` are those that it put together, `gathered` the files of messages that wait for it.
    """

    received: int = 0
    groups: int = 0
    places: Counter[int] = field(default_factory=Counter)
    bits: Counter[int] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    gathered: list[str] = field(default_factory=list)

    def count(self, rows: Rows) -> None:
        self.bits.update(rows.bits)
        lowest = int(rows.at.min()) if len(rows.at) else 0
        counts = np.bincount(rows.at - lowest)
        self.places.update({lowest + int(place): int(counts[place]) for place in np.flatnonzero(counts)})

    def note(self) -> str:
        return json.dumps(vars(self))

    def __iadd__(self, note: Mapping[str, Any]) -> Tally:
        self.received += note["received"]
        self.groups += note["groups"]
        self.gathered += note["gathered"]
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
    gathering: Gathering | None = None
    buckets: int = 1

    def __call__(self, numbers: Iterable[int]) -> Iterator[Row]:
        settle()
        for manifest in TaskWriter(self.targets, self.staging)(self._written(numbers)):
            yield from (Row(**entry) for entry in manifest.to_pylist())

    def _written(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """What goes to sinks, and at the end the counts."""
        tally, gathered = Tally(), Gathered(self.staging.scratch, self.buckets)
        for number in numbers:
            for reader, chunk in self.shares[number]:
                yield from self._chunk(self.readers[reader], chunk, tally, gathered)
        tally.gathered += filter(None, [gathered.close()])
        yield note_of(tally)

    def _chunk(self, reader: Reader, chunk: Chunk, tally: Tally, gathered: Gathered) -> Iterator[pa.RecordBatch]:
        offset = 0
        try:
            for bodies in reader.files.bodies(chunk):
                yield from self._block(_Block(reader, chunk, bodies, offset), tally, gathered)
                offset += len(bodies)
        except UNREADABLE as error:
            raise BadEndpoint(f"cannot read {chunk.path}: {error}") from None

    def _block(self, block: _Block, tally: Tally, gathered: Gathered) -> Iterator[pa.RecordBatch]:
        reader, bodies = block.reader, block.bodies
        decoded, failures = reader.format.decode_batch(bodies, reader.parsed) if reader.decodes else (None, [])
        written = reader.written.write(decoded) if reader.written else None
        parts = written if reader.written and reader.written.parted else None
        rows = Rows(decoded, block.offset + np.arange(len(bodies)), parts,
                    np.full(len(bodies), reader.start, np.int32), np.arange(len(bodies)))  # fmt: skip
        rows.at[[index for index, _ in failures]] = DEAD
        for visit in self.visits:
            visit(rows)
        dead = [(index, reader.route, DECODE, bad.error, bad.reason) for index, bad in failures]
        if self.gathering is not None and rows.keyless is not None:
            self._gather(rows, gathered)
            stage, keyless = self.gathering.stage, rows.keyless[rows.at[rows.keyless] == DEAD]
            dead += [(index, stage.route, stage.node.name, INVALID_KEY, NO_VALUE) for index in keyless.tolist()]
        tally.received += len(bodies)
        tally.count(rows)
        tally.bad.update(f"{route}.{step}" for _, route, step, _, _ in dead)
        going = np.isin(rows.at, [place for place in self.targets if place != DEAD])
        if going.any():
            made = _made(rows, bodies, written, going)
            yield batch_of(rows.at[going], made, np.full(len(made), written is not None))
        if dead and DEAD in self.targets:
            yield block.dead(sorted(dead), self.time)

    def _gather(self, rows: Rows, gathered: Gathered) -> None:
        """Messages that wait for others of their group go to the files of the second job."""
        assert self.gathering is not None
        members, keys = self.gathering.member.write(rows.decoded), rows.keys
        waiting = rows.at == GATHERED
        if not waiting.all():
            chosen = pa.array(waiting)
            members, keys = members.filter(chosen), [key.filter(chosen) for key in keys]
        if len(members):
            gathered.add(keys, members)


@dataclass(frozen=True)
class _Block:
    """Some messages of a chunk; `offset` is the place of the first one in it."""

    reader: Reader
    chunk: Chunk
    bodies: pa.Array
    offset: int

    def dead(self, dead: Sequence[tuple[int, str, str, str, str]], time: datetime) -> pa.RecordBatch:
        """Those that died, by their place, with the route, the step, the error and the reason."""
        chunk = self.chunk
        known = [
            {
                "id": f"{chunk.topic}/{chunk.number}/{self.offset + index}", "topic": chunk.topic,
                "partition": chunk.number, "offset": self.offset + index, "time": time, "attempt": 1,
                "error": {"route": route, "step": step, "error": error, "reason": reason},
            }
            for index, route, step, error, reason in dead
        ]  # fmt: skip
        chosen = self.bodies.take(pa.array([index for index, *_ in dead]))
        return batch_of(np.full(len(known), DEAD, np.int32), chosen, np.full(len(known), False),
                        pa.array(known, _KNOWN))  # fmt: skip


def _made(rows: Rows, bodies: pa.Array, written: pa.Array | None, going: Any) -> pa.Array:
    """The bodies of the rows that go to a sink."""
    if rows.part is not None and written is not None:
        return written.values.take(pa.array(rows.part[going]))
    chosen = bodies if written is None else written
    return chosen if len(chosen) == len(going) and going.all() else chosen.take(pa.array(rows.body[going]))


def batch_of(at: Numbers, bodies: pa.Array, written: Numbers, known: pa.Array | None = None) -> pa.RecordBatch:
    meta = pa.nulls(len(bodies), _KNOWN) if known is None else known
    return pa.RecordBatch.from_arrays([pa.array(at), bodies, pa.array(written), meta], schema=_BATCH)


def note_of(tally: Tally) -> pa.RecordBatch:
    """What a task tells the driver."""
    return batch_of(np.array([NOTE], np.int32), pa.array([tally.note().encode()]), np.array([False]))

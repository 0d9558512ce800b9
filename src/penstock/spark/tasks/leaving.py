"""Arrow batches that a task writes: messages for sinks, dead letters, messages that wait, and notes for the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from penstock.envelope import AT, BODY, DEAD, NOTE, WAITING
from penstock.kernel.block import in_order
from penstock.kernel.bodies import body_of, in_slices, raw, slices
from penstock.kernel.flow import Ends
from penstock.kernel.known import KNOWN, known
from penstock.kernel.outcome import Letters
from penstock.spark.write.staging_files import META

WRITTEN = "written"
"""Whether a body was written as JSON, whatever the format of its sink."""
_BATCH = pa.schema([(AT, pa.int32()), (BODY, pa.binary()), (WRITTEN, pa.bool_()), (META, KNOWN)])


@dataclass(frozen=True)
class Outgoing:
    """What a sink needs: its place, the scopes whose bodies are written anew, and whether it wants the envelope.

    Tasks do not get the sink itself, with its addresses and passwords.
    """

    place: int
    written: frozenset[int]
    wants_meta: bool


def delivered(ends: Ends, outgoing: Mapping[str, Outgoing], time: datetime) -> Iterator[pa.RecordBatch]:
    """The messages for each sink. `time` is for messages whose source gives none."""
    for channel, blocks in ends.delivered.items():
        if channel not in outgoing:
            continue
        target = outgoing[channel]
        for leaving in in_slices(blocks):
            bodies = pa.concat_arrays([body_of(block, target.written) for block in leaving])
            flags = pa.concat_arrays([_same(block.scope.number in target.written, len(block)) for block in leaving])
            meta = pa.concat_arrays([known(block, time) if target.wants_meta else pa.nulls(len(block), KNOWN)
                                     for block in leaving])  # fmt: skip
            batch = _batch_of(target.place, bodies, flags, meta)
            yield batch if len(leaving) == 1 else batch.take(pa.array(in_order(leaving)))


def buried(letters: Sequence[Letters], time: datetime) -> Iterator[pa.RecordBatch]:
    """Dead letters, in the order in which their messages arrived."""
    for chosen in slices([one.died.block for one in letters]) if letters else ():
        pairs = zip(letters, chosen, strict=True)
        some = [replace(one, died=one.died.some(rows)) for one, rows in pairs if len(rows)]
        order = pa.array(in_order([one.died.block for one in some]))
        bodies = pa.concat_arrays([raw(one.died.block) for one in some])
        meta = pa.concat_arrays([known(one.died.block, time, one) for one in some])
        yield _batch_of(DEAD, bodies.take(order), _same(False, len(bodies)), meta.take(order))


def kept_waiting(parcel: bytes) -> pa.RecordBatch:
    """Messages that go on in a later batch, packed into one body."""
    return _batch_of(WAITING, pa.array([parcel]), _same(False, 1), pa.nulls(1, KNOWN))


def note_of(text: str) -> pa.RecordBatch:
    """A note for the driver."""
    return _batch_of(NOTE, pa.array([text.encode()]), _same(False, 1), pa.nulls(1, KNOWN))


def _same(value: bool, length: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), length)


def _batch_of(place: int, bodies: pa.Array, written: pa.Array, meta: pa.Array) -> pa.RecordBatch:
    at = pa.repeat(pa.scalar(place, pa.int32()), len(bodies))
    return pa.RecordBatch.from_arrays([at, bodies, written, meta], schema=_BATCH)

"""Frames that a task stages for a topic of the message log or of Kafka, each for one partition."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.endpoints.log import KEY_HEADER
from penstock.log.frame import Frame
from penstock.log.headers import write_headers
from penstock.log.topics import partition_of
from penstock.schema import Struct
from penstock.spark.write.outlets import Target
from penstock.valuetexts import value_texts

FRAME_BYTES = 4 << 20
UNKEYED = -1
"""The partition that a staged frame names when any will do."""


def frames(bodies: pa.Array, target: Target, meta: pa.StructArray) -> Iterator[Frame]:
    """The messages as frames, in their order; the base of each frame is the number of its partition."""
    assert target.topic is not None
    keys, headers = None, None
    if target.topic.headers and not target.dead:
        keys, headers = _from_headers(meta)
    if target.topic.key is not None:
        keys = _from_field(bodies, target, target.topic.key)
    columns = [bodies.cast(pa.binary()), keys, headers]
    if keys is None or keys.null_count == len(keys):
        yield from _packed([columns[0], None, headers], UNKEYED)
        return
    places = _places(keys, target.partitions)
    for partition in np.unique(places).tolist():
        mine = pa.array(np.flatnonzero(places == partition))
        yield from _packed([None if column is None else column.take(mine) for column in columns], partition)


def _packed(columns: Sequence[pa.Array | None], partition: int) -> Iterator[Frame]:
    """The messages in frames of about `FRAME_BYTES`; a larger message has a frame of its own."""
    values = columns[0]
    assert values is not None
    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    start = 0
    while start < len(values):
        stop = int(ends.searchsorted(int(ends[start]) + FRAME_BYTES, side="right")) - 1
        stop = min(max(stop, start + 1), len(values))
        cut = [None if column is None else column.slice(start, stop - start) for column in columns]
        assert cut[0] is not None
        yield Frame.pack(cut[0], keys=_if_any(cut[1]), headers=_if_any(cut[2]), base=partition)
        start = stop


def _if_any(column: pa.Array | None) -> pa.Array | None:
    return None if column is None or column.null_count == len(column) else column


def _places(keys: pa.Array, partitions: int) -> Any:
    """The partition of every message: each distinct key is hashed once, and messages without a key go to the first."""
    coded = keys.dictionary_encode()
    known = [0 if key is None else partition_of(key, partitions) for key in coded.dictionary.to_pylist()]
    indices = coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return np.array([*known, 0], np.int64)[indices]


def _from_field(bodies: pa.Array, target: Target, name: str) -> pa.Array:
    kind = target.format.schema.get(name)
    assert kind is not None
    decoded, _ = target.format.decode_batch(bodies, Struct(((name, kind),)))
    return value_texts(pc.struct_field(decoded, name)).cast(pa.binary())


def _from_headers(meta: pa.StructArray) -> tuple[pa.Array, pa.Array]:
    """The key is the header of that name; the others stay headers."""
    keys: list[bytes | None] = []
    headers: list[bytes | None] = []
    for pairs in meta.field("headers").to_pylist():
        found = dict(pairs or ())
        key = found.pop(KEY_HEADER, None)
        keys.append(None if key is None else key.encode())
        headers.append(write_headers(found))
    return pa.array(keys, pa.binary()), pa.array(headers, pa.binary())


def staged_frames(path: str) -> Iterator[Frame]:
    """The frames in a file that a task has staged."""
    with open(path, "rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ))
    position = 0
    while position < len(view):
        frame = Frame.parse(view[position:], trusted=True)
        yield frame
        position += frame.bytes

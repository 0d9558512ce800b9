"""Messages on their way from the tasks that read them to those that group them: an Arrow file of each task.

A file has the messages as they came, with the bucket of each; who groups a bucket maps all files and takes its own.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.formats.jsonarrays import Texts

Numbers = npt.NDArray[Any]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_UPPER = np.uint64(32)
_POWERS = np.cumprod(np.full(64, 0x100000001B3, np.uint64), dtype=np.uint64)


class Gathered:
    """The file of one task: the bucket, the body, and then the keys."""

    def __init__(self, directory: str, buckets: int) -> None:
        self.path, self.buckets = os.path.join(directory, f"{uuid.uuid4().hex}.arrow"), buckets
        self.writer: pa.ipc.RecordBatchFileWriter | None = None

    def add(self, keys: Sequence[pa.Array], bodies: pa.Array) -> None:
        bucket = pa.array(bucket_of(keys, self.buckets).astype(np.uint16))
        names = ["bucket", "body", *(f"key_{number}" for number in range(len(keys)))]
        batch = pa.RecordBatch.from_arrays([bucket, bodies, *keys], names=names)
        if self.writer is None:
            self.writer = pa.ipc.new_file(self.path, batch.schema)
        self.writer.write_batch(batch)

    def close(self) -> str | None:
        """The path of the file, if there is one."""
        if self.writer is None:
            return None
        self.writer.close()
        return self.path


@dataclass(frozen=True)
class Bucket:
    """Messages in their order."""

    keys: list[pa.Array]
    texts: Texts

    @classmethod
    def read(cls, paths: Iterable[str], number: int) -> Bucket:
        """Mapped into memory, not copied. Behind the last body of a file there is at least what ends an Arrow file."""
        batches = [
            reader.get_batch(index)
            for reader in (pa.ipc.open_file(pa.memory_map(path)) for path in paths)
            for index in range(reader.num_record_batches)
        ]
        rows = [np.flatnonzero(batch.column(0).to_numpy() == number) for batch in batches]
        mine = [batch.take(pa.array(chosen)) for batch, chosen in zip(_keys(batches), rows, strict=True)]
        keys = [pa.concat_arrays(columns) for columns in zip(*(batch.columns for batch in mine), strict=True)]
        return cls(keys, Texts([batch.column(1) for batch in batches], rows))


def _keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch.select(batch.schema.names[2:]) for batch in batches)


def bucket_of(keys: Sequence[pa.Array], count: int) -> Numbers:
    """The same number for the same keys in every process."""
    mixed = np.zeros(len(keys[0]), np.uint64)
    with np.errstate(over="ignore"):
        for key in keys:
            mixed = (mixed ^ _number(key)) * _GOLDEN
            mixed ^= mixed >> _UPPER
    found: Numbers = (mixed % np.uint64(count)).astype(np.int64)
    return found


def _number(key: pa.Array) -> Numbers:
    if not pa.types.is_string(key.type):
        return np.asarray(key.cast(pa.int64()).to_numpy()).astype(np.uint64)
    _, ends, text = key.buffers()
    places = np.frombuffer(ends, np.int32)[key.offset : key.offset + len(key) + 1].astype(np.int64)
    characters = np.frombuffer(text if text is not None else b"", np.uint8)[places[0] : places[-1]]
    places -= places[0]
    position = np.arange(len(characters)) - np.repeat(places[:-1], np.diff(places))
    sums = np.zeros(len(characters) + 1, np.uint64)
    np.cumsum(characters.astype(np.uint64) * _POWERS[position % len(_POWERS)], out=sums[1:])
    found: Numbers = sums[places[1:]] - sums[places[:-1]]
    return found

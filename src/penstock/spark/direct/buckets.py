"""Messages on their way from the tasks that read them to those that group them: Arrow files, one for each bucket."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[Any]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_UPPER = np.uint64(32)
_POWERS = np.cumprod(np.full(64, 0x100000001B3, np.uint64), dtype=np.uint64)


class Buckets:
    """The files of one task. Keys first, and last the body."""

    def __init__(self, directory: str, count: int) -> None:
        self.directory, self.count = directory, count
        self.name = uuid.uuid4().hex
        self.writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}

    def add(self, keys: Sequence[pa.Array], bodies: pa.Array) -> None:
        batch = pa.RecordBatch.from_arrays([*keys, bodies], names=[*(f"key_{n}" for n in range(len(keys))), "body"])
        bucket = bucket_of(keys, self.count)
        for number in np.unique(bucket).tolist():
            chosen = bucket == number
            self._writer(number, batch.schema).write_batch(batch if chosen.all() else batch.filter(pa.array(chosen)))

    def close(self) -> list[tuple[int, str]]:
        """The bucket and the path of every file."""
        for writer in self.writers.values():
            writer.close()
        return [(number, self._path(number)) for number in self.writers]

    def _writer(self, number: int, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
        if number not in self.writers:
            os.makedirs(self.directory, exist_ok=True)
            self.writers[number] = pa.ipc.new_file(self._path(number), schema)
        return self.writers[number]

    def _path(self, number: int) -> str:
        return os.path.join(self.directory, f"{number}-{self.name}.arrow")


def read_bucket(paths: Iterable[str]) -> pa.Table:
    """The messages of one bucket, mapped into memory."""
    return pa.concat_tables([pa.ipc.open_file(pa.memory_map(path)).read_all() for path in paths])


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

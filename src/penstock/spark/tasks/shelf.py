"""Keep parcels in files, on one machine: Spark's shuffle then carries only where they are.

On a cluster parcels travel themselves, because another machine may need them, and Spark makes them again when an
executor is lost.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.spark.write.staging import Staging

_ALIGNED = 64
"""Arrow computes fastest on memory that begins at a multiple of so many bytes."""


@dataclass(frozen=True)
class Stored:
    """A parcel in a file."""

    path: str
    start: int
    length: int

    def __len__(self) -> int:
        return self.length


@contextmanager
def shelf_of(staging: Staging, is_local: bool) -> Iterator[str | None]:
    """The directory for the parcels of one pass, which ends with it; None where they have to travel."""
    directory = os.path.join(staging.scratch, f"parcels-{staging.attempt}")
    try:
        yield directory if is_local else None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass
class Shelf:
    """The file of one task, which is made with its first parcel."""

    directory: str
    file: pa.NativeFile | None = None
    path: str = field(default_factory=lambda: uuid.uuid4().hex)

    def put(self, rows: pa.Table) -> Stored:
        if self.file is None:
            os.makedirs(self.directory, exist_ok=True)
            self.path = os.path.join(self.directory, self.path)
            self.file = pa.OSFile(self.path, "wb")
        start = self.file.tell()
        with pa.ipc.new_stream(self.file, rows.schema) as writer:
            writer.write_table(rows)
        end = self.file.tell()
        self.file.write(bytes(-end % _ALIGNED))
        return Stored(self.path, start, end - start)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def fetched(parcel: Stored) -> pa.Buffer:
    """What is in a parcel, mapped into memory; it stays there as long as the buffer is used."""
    with pa.memory_map(parcel.path) as file:
        file.seek(parcel.start)
        return file.read_buffer(parcel.length)

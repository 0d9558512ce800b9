"""Parquet tables as a source: row groups become tasks, and columns need no decoder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from penstock.endpoints.files import Parquet, Table, check_columns, root_of
from penstock.errors import BadEndpoint
from penstock.formats.arrow import arrow_type
from penstock.formats.jsonnested import write_bodies
from penstock.kernel.block import Arrived
from penstock.kernel.content import struct_of
from penstock.plan.plan import Entry
from penstock.spark.read.lines import BLOCK_BYTES, Chunk, chunks
from penstock.spark.read.pieces import ROWS_AT_ONCE

_NULL = "__HIVE_DEFAULT_PARTITION__"


class ParquetPieces:
    """The files of a table in chunks; a chunk has the row groups that begin in it.

    Paths are absolute, because tasks may run in another directory.
    """

    def __init__(self, entry: Entry) -> None:
        self.path, self.schema = os.path.abspath(path_of(entry)), entry.format.schema
        self.root = root_of(self.path)

    def found(self, cores: int = 1) -> list[Chunk]:
        return [chunk for path in self.paths() for chunk in self.chunks(path)]

    def paths(self) -> list[str]:
        if os.path.isdir(self.path):
            return sorted(_visible(self.path))
        return [self.path] if os.path.exists(self.path) else []

    def check(self, path: str) -> None:
        """Nothing is checked here: the task that reads a file says what is wrong with it."""

    def chunks(self, path: str) -> list[Chunk]:
        return chunks(path, os.path.relpath(path, self.root), os.path.getsize(path))

    def blocks(self, chunk: Chunk) -> Iterator[Arrived]:
        try:
            with pyarrow.parquet.ParquetFile(chunk.path) as file:
                folders = self._folders(chunk.path)
                stored = [column for column in file.schema_arrow if column.name not in folders]
                check_columns(stored, chunk.path, self.schema)
                names = [column.name for column in stored if self.schema.get(column.name) is not None]
                for group, offset in _groups(file.metadata, chunk):
                    for rows in file.iter_batches(_rows_at_once(file.metadata.row_group(group)), [group], names):
                        yield self._arrived(rows, chunk.topic, offset, folders)
                        offset += len(rows)
        except (OSError, pa.ArrowException) as error:
            raise BadEndpoint(f"cannot read {chunk.path}: {error}") from None

    def _arrived(self, rows: pa.RecordBatch, topic: str, offset: int, folders: Mapping[str, str | None]) -> Arrived:
        rows.validate(full=True)  # text that is no text stops here
        length, kinds = len(rows), arrow_type(self.schema)
        given = dict(zip(rows.schema.names, rows.columns, strict=True))
        given |= {name: pa.repeat(pa.scalar(value, pa.string()), length) for name, value in folders.items()}
        columns = [given[one.name].cast(one.type) if one.name in given else pa.nulls(length, one.type) for one in kinds]
        fields = struct_of(self.schema, columns, length)
        return Arrived(write_bodies(fields, self.schema), topic, 0, np.arange(offset, offset + length), fields=fields)

    def _folders(self, path: str) -> dict[str, str | None]:
        """The columns that a file has by the names of its folders: `region=EU`."""
        parts = os.path.relpath(path, self.root).split(os.sep)[:-1]
        named = (part.partition("=")[::2] for part in parts if "=" in part)
        found = ((unquote(name), None if value == _NULL else unquote(value)) for name, value in named)
        return {name: value for name, value in found if self.schema.get(name) is not None}


def path_of(entry: Entry) -> str:
    assert isinstance(entry.source, Parquet | Table)
    return entry.source.path


def check(entry: Entry) -> None:
    """Raise what is wrong with a table, before anything is read."""
    if not os.path.exists(path_of(entry)):
        raise BadEndpoint(f"route {entry.route!r} reads {path_of(entry)}, and there is no such file",
                          fix="check the path; it is relative to where you run")  # fmt: skip


def _visible(directory: str) -> Iterator[str]:
    """Files of a table are in its directory, and in folders that name the value of a column."""
    for one in os.scandir(directory):
        named = "=" in one.name
        if one.name.startswith(".") or (one.name.startswith("_") and not named):
            continue
        if one.is_dir():
            yield from _visible(one.path) if named else ()
        else:
            yield one.path


def _groups(metadata: Any, chunk: Chunk) -> Iterator[tuple[int, int]]:
    """The row groups that begin in a chunk, and the number of the first row of each."""
    first = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if chunk.start <= _start(group) < chunk.end:
            yield number, first
        first += group.num_rows


def _start(group: Any) -> int:
    if not group.num_columns:
        return 0
    column = group.column(0)
    return int(column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset)


def _rows_at_once(group: Any) -> int:
    row = max(group.total_byte_size // max(group.num_rows, 1), 1)
    return int(min(max(BLOCK_BYTES // row, 1), ROWS_AT_ONCE))

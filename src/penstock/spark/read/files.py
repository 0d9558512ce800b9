"""Files as a source, in batch and as a stream: tasks read chunks of them."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes

from penstock.endpoints.files import Files, find_files, root_of
from penstock.errors import BadEndpoint, BadSchema, ChangedApp
from penstock.formats import Csv, Format, Json, Xml
from penstock.formats.jsonfiles import LINES, detected
from penstock.formats.opening import UNREADABLE, open_file
from penstock.kernel.block import Arrived
from penstock.plan.plan import Entry
from penstock.spark.read.lines import CHUNK_BYTES, Chunk, chunks, read_lines
from penstock.spark.read.pieces import Pieces
from penstock.spark.read.records import read_csv_records, read_json_records, read_xml_records

BYTES_PER_BATCH = 128 * 1024 * 1024


class FilePieces:
    """The files of a source in chunks; paths are absolute, because tasks may run in another directory."""

    def __init__(self, entry: Entry) -> None:
        assert isinstance(entry.source, Files)
        self.source = replace(entry.source, path=os.path.abspath(entry.source.path))
        self.format, self.root = entry.format, root_of(self.source.path)

    def found(self, cores: int = 1) -> list[Chunk]:
        return [chunk for path in self.paths() for chunk in self.chunks(path)]

    def paths(self) -> list[str]:
        return find_files(self.source.path)

    def check(self, path: str) -> None:
        check_header(path, self.format)

    def chunks(self, path: str, chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
        whole, topic = isinstance(self.format, (Csv, Xml)), os.path.relpath(path, self.root)
        return chunks(path, topic, os.path.getsize(path), whole, chunk_bytes, self.records_of(path))

    def records_of(self, path: str) -> str:
        """How the file is cut into messages: as the source says, or else as the file looks."""
        if not isinstance(self.format, Json):
            return LINES
        try:
            return self.source.records or detected(partial(open_file, path))
        except UNREADABLE:
            return LINES  # whoever reads it says what is wrong

    def blocks(self, chunk: Chunk) -> Iterator[Arrived]:
        offset = 0
        try:
            for bodies in self._bodies(chunk):
                numbers = np.arange(offset, offset + len(bodies))
                yield Arrived(bodies, chunk.topic, chunk.number, numbers)
                offset += len(bodies)
        except UNREADABLE as error:
            raise BadEndpoint(f"cannot read {chunk.path}: {error}") from None

    def _bodies(self, chunk: Chunk) -> Iterator[pa.Array]:
        if isinstance(self.format, Xml):
            return read_xml_records(chunk, self.source.record)
        if isinstance(self.format, Csv):
            return read_csv_records(chunk, self.format)
        if chunk.records != LINES:
            return read_json_records(chunk)
        return read_lines(chunk)


class PiecesOfFiles(Pieces[Chunk], Protocol):
    """A source that consists of files, whatever is in them."""

    def paths(self) -> list[str]:
        """The files that are there now."""

    def check(self, path: str) -> None:
        """Raise what is wrong with a file that has just appeared."""

    def chunks(self, path: str) -> list[Chunk]: ...


class FilesStream:
    """Files as they appear. Every chunk gets a number in a log beside the checkpoint, and this number is its offset.

    A file must be complete when it appears (write it elsewhere and rename it).
    """

    def __init__(
        self, pieces: PiecesOfFiles, log: str, bytes_per_batch: int = BYTES_PER_BATCH
    ) -> None:
        self.pieces = pieces
        self.bytes_per_batch = bytes_per_batch
        self.log: str = log
        self.target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"chunks": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self.bytes_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = len(self._discover())

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        known = self._read_log() if self.target is not None else self._discover()
        first = _number(start)
        self._check(known, first)
        last = len(known) if self.target is None else max(self.target, first)
        if isinstance(limit, ReadAllAvailable):
            return {"chunks": last}
        budget, number = getattr(limit, "max_bytes", self.bytes_per_batch), first
        while number < last and (budget > 0 or number == first):
            budget -= known[number].end - known[number].start
            number += 1
        return {"chunks": number}

    def between(self, start: dict[str, int], end: dict[str, int]) -> list[Chunk]:
        known, last = self._read_log(), _number(end)
        self._check(known, last)
        return known[_number(start) : last]

    def _check(self, known: Sequence[Chunk], number: int) -> None:
        if len(known) < number:
            raise BadEndpoint(f"the stream has come to chunk {number}, and {self.log} knows {len(known)}",
                              fix="restore the checkpoint, or start with a new one")  # fmt: skip

    def _discover(self) -> list[Chunk]:
        """All chunks so far, after those of new files were added to the log."""
        known = self._read_log()
        seen = {chunk.path for chunk in known}
        new = [path for path in self.pieces.paths() if path not in seen]
        for path in new:
            self.pieces.check(path)
        fresh = [chunk for path in new for chunk in self.pieces.chunks(path)]
        if fresh:
            os.makedirs(os.path.dirname(self.log), exist_ok=True)
            with open(self.log, "a+b") as file:
                _drop_half_line(file)
                file.write("".join(json.dumps(vars(chunk)) + "\n" for chunk in fresh).encode())
                file.flush()
                os.fsync(file.fileno())
        return known + fresh

    def _read_log(self) -> list[Chunk]:
        try:
            with open(self.log, encoding="utf-8") as file:
                return [Chunk(**json.loads(line)) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []


def _number(offset: dict[str, int]) -> int:
    """Streams of earlier versions read Parquet through Spark, which counted other things than we do."""
    if offset.keys() != {"chunks"}:
        raise ChangedApp(f"the checkpoint has a position of another kind: {offset}, as an earlier version wrote it",
                         fix="start with a new checkpoint; what was read already is read again, unless you move it"
                         " elsewhere")  # fmt: skip
    return offset["chunks"]


def check(source: Files, entry: Entry, streaming: bool) -> None:
    """Raise what is wrong with the files of a source, before Spark starts."""
    found = find_files(source.path)
    if not found and not (streaming and (os.path.isdir(source.path) or "*" in source.path)):
        raise BadEndpoint(f"route {entry.route!r} reads {source.path}, and there is no such file",
                          fix="check the path; it is relative to where you run")  # fmt: skip
    for path in found:
        if not os.access(path, os.R_OK):
            raise BadEndpoint(f"route {entry.route!r} may not read {path}", fix="change the file's permissions")
        check_header(path, entry.format)


def check_header(path: str, format: Format) -> None:
    """Raise what is wrong with the header of a CSV file."""
    if not isinstance(format, Csv) or not format.header:
        return
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8-sig", errors="replace", newline="") as file:
            names = next(csv.reader(file, delimiter=format.delimiter, quotechar=format.quote), [])
    except UNREADABLE as error:
        raise BadEndpoint(f"cannot read {path}: {error}") from None
    if names and tuple(name.strip() for name in names) != format.schema.names:
        found, wanted = ", ".join(names), ", ".join(format.schema.names)
        raise BadSchema(f"the header of {path} is {found}, but the schema has {wanted}",
                        fix="give the fields in the file's order, or header=False for a file without one")  # fmt: skip


def _drop_half_line(file: BinaryIO) -> None:
    """Remove the beginning of a line that a crash left at the end of the log: nobody has seen its chunk."""
    file.seek(0)
    content = file.read()
    file.truncate(content.rfind(b"\n") + 1)

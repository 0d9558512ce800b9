"""Write what a task has for the sinks: one staged file per sink, and a line in the manifest for each."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from lxml import etree

from penstock.durable import sync_all
from penstock.endpoints.files import ADDED
from penstock.endpoints.kafka import KafkaTopic
from penstock.endpoints.log import Log
from penstock.envelope import NOTE
from penstock.formats import Csv, Malformed
from penstock.formats.arrow import arrow_type
from penstock.formats.json import decode
from penstock.formats.xml import parse
from penstock.spark.write.flat import flat
from penstock.spark.write.frames import frames
from penstock.spark.write.outlets import CSV, DOCUMENT, FRAMES, KEEP, PARQUET, ROOM, ROWS, Target
from penstock.spark.write.staging import Staging

META = "meta"
"""The column with the envelope of a message."""


class Writer(Protocol):
    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None: ...

    def close(self) -> None: ...


class TaskWriter:
    """Makes the staged files of a task; pickled to the workers.

    Partitions count from `first`, so that tasks of a later stage do not write to the files of an earlier one.
    """

    def __init__(self, targets: Mapping[int, Target], staging: Staging, first: int = 0) -> None:
        # Tasks have no business with the addresses and passwords of servers.
        self.targets = {place: _without_secrets(target) for place, target in targets.items()}
        self.staging, self.first, self.gate = staging, first, staging.gate

    def begin(self) -> Writing:
        from pyspark import TaskContext

        context = TaskContext.get()
        return Writing(self, self.first + (context.partitionId() if context else 0))

    def open(self, target: Target, partition: int) -> tuple[Writer, str]:
        directory = self.staging.directory(target)
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, f"{target.place}-{partition:05d}-{uuid.uuid4().hex}.{target.ending}")
        makers: dict[str, Any] = {
            PARQUET: ParquetWriter, ROWS: ParquetWriter, KEEP: KeepWriter, CSV: CsvWriter, DOCUMENT: DocumentWriter,
            FRAMES: FrameWriter, ROOM: KeepWriter,
        }  # fmt: skip
        if target.dead and target.style == FRAMES:
            return FrameWriter(path, target, self._names(partition)), path
        if target.dead and target.style not in (PARQUET, ROWS, KEEP):
            return DeadLetterWriter(path, self._names(partition)), path
        if target.dead and target.style != KEEP:
            return ParquetWriter(path, target, self._names(partition)), path
        return makers.get(target.style, LineWriter)(path, target), path

    def _names(self, partition: int) -> Iterator[str]:
        """Names for the dead letters of this task, which no other dead letter of any batch has."""
        stem = f"{self.staging.key}-{partition:05d}"
        return (hashlib.sha256(f"{stem}/{row}".encode()).hexdigest()[:16] for row in itertools.count())


class Writing:
    """The open files of one task."""

    def __init__(self, writer: TaskWriter, partition: int) -> None:
        self.writer, self.partition = writer, partition
        self.open: dict[int, tuple[Writer, str]] = {}
        self.rows: Counter[int] = Counter()
        self.notes: list[str] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Write each row to the sink at its place, and collect notes for the driver."""
        at, bodies, written, meta = batch.columns
        for place in pc.unique(at).to_pylist():
            chosen = pc.equal(at, place)
            mine = bodies.filter(chosen)
            if place == NOTE:
                self.notes += (note.decode() for note in mine.to_pylist())
                continue
            if place not in self.open:
                self.open[place] = self.writer.open(self.writer.targets[place], self.partition)
            self.open[place][0].write(mine, written.filter(chosen), meta.filter(chosen))
            self.rows[place] += len(mine)

    def close(self) -> list[dict[str, Any]]:
        """Close the files; returns their lines for the manifest."""
        for file, _ in self.open.values():
            file.close()
        targets = self.writer.targets
        sync_all(path for place, (_, path) in self.open.items() if targets[place].lasts)
        listed = [{"place": place, "path": path, "rows": self.rows[place], "partition": self.partition}
                  for place, (_, path) in self.open.items()]  # fmt: skip
        return listed + [{"place": NOTE, "path": note, "rows": 0, "partition": self.partition} for note in self.notes]


def _without_secrets(target: Target) -> Target:
    match target.topic:
        case Log():
            return replace(target, topic=replace(target.topic, token=""))
        case KafkaTopic():
            return replace(target, topic=replace(target.topic, options=()))
    return replace(target, table=None)


class FileWriter:
    def __init__(self, path: str) -> None:
        self.file = open(path, "wb")  # noqa: SIM115

    def close(self) -> None:
        self.file.close()


class LineWriter(FileWriter):
    """One body per line. A line end inside JSON can only be white space, so it becomes a blank."""

    def __init__(self, path: str, target: Target) -> None:
        super().__init__(path)
        self.target, self.is_json = target, target.format.name == "json"

    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None:
        if not self.is_json:
            self.file.write(b"".join(line + b"\n" for line in in_format(self.target, bodies, written)))
            return
        text = bytes(joined_lines(bodies))
        if text.count(b"\n") != len(bodies) or b"\r" in text:
            lines = bodies.to_pylist()
            text = b"".join(line.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for line in lines)
        self.file.write(text)


class CsvWriter(LineWriter):
    """Records under a header; bodies that are not CSV yet arrive as JSON."""

    def __init__(self, path: str, target: Target) -> None:
        super().__init__(path, target)
        if isinstance(target.format, Csv) and target.format.header:
            self.file.write(target.format.delimiter.join(target.format.schema.names).encode() + b"\n")

    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None:
        for record in in_format(self.target, bodies, written):
            self.file.write(record + b"\n")


class DocumentWriter(LineWriter):
    """XML elements under one root; bodies that are not XML yet arrive as JSON.

    A body that nobody read and that is not XML would spoil the document: it stands there in base64.
    """

    def __init__(self, path: str, target: Target) -> None:
        super().__init__(path, target)
        self.file.write(b"<?xml version='1.0' encoding='utf-8'?>\n<messages>\n")

    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None:
        for body in in_format(self.target, bodies, written):
            root = parse(body)
            if isinstance(root, Malformed):
                root = etree.Element("unreadable", encoding="base64")
                root.text = base64.b64encode(body).decode("ascii")
            self.file.write(etree.tostring(root, encoding="utf-8", with_tail=False) + b"\n")

    def close(self) -> None:
        self.file.write(b"</messages>\n")
        super().close()


def joined_lines(bodies: pa.Array) -> memoryview:
    """All bodies, each with a line end behind it."""
    lines = pc.binary_join_element_wise(bodies.cast(pa.binary()), b"\n", b"")
    _, offsets, data = lines.buffers()
    first, last = np.frombuffer(offsets, np.int32)[[lines.offset, lines.offset + len(lines)]]
    return memoryview(data if data is not None else b"")[first:last]


def in_format(target: Target, bodies: pa.Array, written: pa.BooleanArray) -> Iterator[bytes]:
    """Bodies that came as JSON in the format of the sink, written by the encoder that the reference uses."""
    format, fields = target.format, target.exact
    for body, is_json in zip(bodies.to_pylist(), written.to_pylist(), strict=True):
        if not is_json or format.name == "json":
            yield body
        else:
            yield format.encode(json.loads(body) if fields is None else cast(dict[str, Any], decode(body, fields)))


class DeadLetterWriter(FileWriter):
    """Everything known about a dead letter as one JSON line; bytes that are not text are in base64."""

    def __init__(self, path: str, names: Iterator[str]) -> None:
        super().__init__(path)
        self.names = names

    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None:
        for body, known in zip(bodies.to_pylist(), meta.to_pylist(), strict=True):
            self.file.write(msgspec.json.encode(dead_letter(next(self.names), body, known)) + b"\n")


class FrameWriter(FileWriter):
    """Frames for a topic; dead letters as they would be in a file."""

    def __init__(self, path: str, target: Target, names: Iterator[str] | None = None) -> None:
        super().__init__(path)
        self.target, self.names = target, names

    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None:
        if self.names is not None:
            letters = zip(bodies.to_pylist(), meta.to_pylist(), self.names, strict=False)
            lines = [msgspec.json.encode(dead_letter(name, body, known)) for body, known, name in letters]
            bodies = pa.array(lines, pa.binary())
        elif self.target.format.name != "json":
            bodies = pa.array(in_format(self.target, bodies, written), pa.binary())
        for frame in frames(bodies, self.target, meta):
            self.file.write(frame.data)


def dead_letter(name: str, body: bytes, known: Mapping[str, Any]) -> dict[str, Any]:
    try:
        text, encoding = body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(body).decode("ascii"), "base64"
    error = known["error"] or {}
    return {
        "letter": name, "route": error.get("route"), "step": error.get("step"), "error": error.get("error"),
        "reason": error.get("reason"), "attempt": known["attempt"], "time": known["time"], "id": known["id"],
        "topic": known["topic"], "partition": known["partition"], "offset": known["offset"],
        "headers": dict(known["headers"] or ()), "attachments": _in_base64(known["attachments"]),
        "parent": known["parent"], "index": known["index"], "count": known["count"],
        "fields": known["fields"], "body": text, "encoding": encoding,
    }  # fmt: skip


def _in_base64(attachments: Iterable[tuple[str, bytes]] | None) -> dict[str, str]:
    return {name: base64.b64encode(content).decode("ascii") for name, content in attachments or ()}


class KeepWriter:
    """Rows as they are, for the driver to read back; only the first ones when that is all it shows."""

    def __init__(self, path: str, target: Target) -> None:
        self.path, self.left, self.target = path, target.rows, target
        self.writer: pa.ipc.RecordBatchFileWriter | None = None

    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None:
        converted = pa.array(in_format(self.target, bodies, written), pa.binary())
        batch = pa.RecordBatch.from_arrays([converted, meta], names=["body", META])
        if self.writer is None:
            self.writer = pa.ipc.new_file(self.path, batch.schema)
        if self.left is not None:
            batch = batch.slice(0, self.left)
            self.left -= len(batch)
        self.writer.write_batch(batch)

    def close(self) -> None:
        assert self.writer is not None
        self.writer.close()


class ParquetWriter:
    """The body's fields as columns, and beside them what is known about the message."""

    def __init__(self, path: str, target: Target, names: Iterator[str] | None = None) -> None:
        self.target, self.path, self.names = target, path, names
        self.writer: pyarrow.parquet.ParquetWriter | None = None

    def write(self, bodies: pa.Array, written: pa.BooleanArray, meta: pa.StructArray) -> None:
        table = self._dead(bodies, meta) if self.target.dead else self._fields(bodies, meta)
        if self.target.style == ROWS:
            table = flat(table, dict(self.target.format.schema.fields))
        if self.writer is None:
            self.writer = pyarrow.parquet.ParquetWriter(self.path, table.schema, compression="zstd")
        self.writer.write_table(table)

    def _fields(self, bodies: pa.Array, meta: pa.StructArray) -> pa.Table:
        schema = self.target.format.schema
        fields, _ = self.target.format.decode_batch(bodies, schema)
        known = {name: _null_if_empty(meta.field(name.removeprefix("_"))) for name in ADDED}
        columns = fields.cast(arrow_type(schema)).flatten()
        return pa.table([*columns, *known.values()], names=[*schema.names, *known])

    def _dead(self, bodies: pa.Array, meta: pa.StructArray) -> pa.Table:
        assert self.names is not None
        rows = [
            dead_letter(next(self.names), body, known)
            | {"body": body, "headers": known["headers"] or None, "attachments": known["attachments"] or None}
            for body, known in zip(bodies.to_pylist(), meta.to_pylist(), strict=True)
        ]
        text = ("letter", "route", "step", "error", "reason", "id", "topic", "parent", "fields", "encoding")
        schema = pa.schema(
            [(name, pa.string()) for name in text]
            + [("attempt", pa.int32()), ("time", pa.timestamp("us", "UTC")), ("partition", pa.int32())]
            + [(name, pa.int64()) for name in ("offset", "index", "count")]
            + [("headers", pa.map_(pa.string(), pa.string())), ("attachments", pa.map_(pa.string(), pa.binary()))]
            + [("body", pa.binary())]
        )
        return pa.Table.from_pylist(rows, schema=schema)

    def close(self) -> None:
        assert self.writer is not None
        self.writer.close()


def _null_if_empty(column: pa.Array) -> pa.Array:
    """Maps come to the task empty where there is none."""
    if not pa.types.is_map(column.type):
        return column
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    empty = np.append(np.diff(ends) == 0, False)
    return pa.MapArray.from_arrays(pa.array(ends, mask=empty), column.keys, column.items, type=column.type)

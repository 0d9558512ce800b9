"""A list of messages as a source: tasks get the messages inside their pieces or, on a stream, read them from a file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from penstock.durable import write_whole
from penstock.endpoints.memory import Memory, as_messages
from penstock.envelope import ATTACHMENTS, BODY, ENVELOPE, HEADERS, ID, OFFSET, PARTITION, TOPIC
from penstock.errors import BadEndpoint
from penstock.kernel.block import Arrived, arrived_of
from penstock.message import Message
from penstock.plan.plan import Entry
from penstock.spark.read.offsets import Range

_ROWS = b"rows"
_STORED = pa.schema(map(ENVELOPE.field, (ID, HEADERS, ATTACHMENTS, BODY, TOPIC, PARTITION, OFFSET)))


@dataclass(frozen=True)
class Listed:
    """Neighbouring messages of the list, with their content."""

    messages: tuple[Message, ...]

    @property
    def size(self) -> int:
        return sum(len(message.raw) for message in self.messages)


class MemoryPieces:
    def __init__(self, source: Memory, route: str) -> None:
        self.source, self.route = source, route

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the list: tasks find the messages in their pieces."""
        return {"route": self.route}

    def found(self, cores: int) -> list[Listed]:
        messages = as_messages(self.source.messages, self.route)
        return [Listed(messages[start:end]) for start, end in _cut(0, len(messages), self.source.partitions)]

    def blocks(self, piece: Listed) -> Iterator[Arrived]:
        yield arrived_of(piece.messages, self.route)


def _cut(first: int, last: int, parts: int) -> Iterator[tuple[int, int]]:
    """Ranges of equal length from `first` to `last`, without empty ones."""
    ends = [first + (last - first) * number // parts for number in range(parts + 1)]
    return ((start, end) for start, end in itertools.pairwise(ends) if start < end)


def stored(entry: Entry) -> pa.Table:
    """The list as a table."""
    assert isinstance(entry.source, Memory)
    messages = as_messages(entry.source.messages, entry.route)
    return pa.Table.from_pylist([_row(message) for message in messages], schema=_STORED)


def _row(message: Message) -> dict[str, object]:
    return {
        ID: message.id,
        HEADERS: list(message.headers.items()) or None,
        ATTACHMENTS: list(message.attachments.items()) or None,
        BODY: message.raw,
        TOPIC: message.position.topic,
        PARTITION: message.position.partition,
        OFFSET: message.position.offset,
    }


class StoredPieces:
    """Ranges of a list that was stored as an Arrow file."""

    def __init__(self, path: str, route: str) -> None:
        self.path, self.route = path, route

    def found(self, cores: int) -> list[Range]:
        return [Range(0, 0, self.count())]

    def blocks(self, piece: Range) -> Iterator[Arrived]:
        for batch in self.batches(piece):
            yield Arrived(batch[BODY], self.route, piece.partition, batch[OFFSET].to_numpy(), headers=batch[HEADERS],
                          attachments=batch[ATTACHMENTS], ids=batch[ID])  # fmt: skip

    def batches(self, piece: Range) -> list[pa.RecordBatch]:
        with pa.memory_map(self.path) as file:
            table = pa.ipc.open_file(file).read_all().slice(piece.first, piece.stop - piece.first)
            return list(table.replace_schema_metadata(None).to_batches())

    def count(self) -> int:
        with pa.memory_map(self.path) as file:
            return int(pa.ipc.open_file(file).schema.metadata[_ROWS])

    def store(self, table: pa.Table) -> None:
        content = pa.BufferOutputStream()
        with pa.ipc.new_file(content, table.schema.with_metadata({_ROWS: str(len(table))})) as writer:
            writer.write_table(table.combine_chunks())
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        write_whole(self.path, content.getvalue())


class StoredStream:
    """A list of messages as a stream, so many at a time; an offset is how many were read."""

    def __init__(self, entry: Entry, path: str, rows_per_batch: int) -> None:
        assert isinstance(entry.source, Memory)
        self.pieces = StoredPieces(path, entry.route)
        self.pieces.store(stored(entry))
        self.rows_per_batch, self.parts = rows_per_batch, entry.source.partitions

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """A stored list does not grow."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        total = self.pieces.count()
        if total < start["rows"]:
            read, route = start["rows"], self.pieces.route
            raise BadEndpoint(
                f"the stream has read {read} messages of the list of route {route!r}, which has {total}",
                fix="give the list as it was, with more behind it, or start with a new checkpoint",
            )
        return {"rows": min(start["rows"] + self.rows_per_batch, total)}

    def between(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        return [Range(0, first, last) for first, last in _cut(start["rows"], end["rows"], self.parts)]

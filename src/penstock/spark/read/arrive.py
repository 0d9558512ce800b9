"""From a source to the rows that a plan starts with, in batch and as a stream."""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.endpoints.files import Files, Parquet, Table
from penstock.endpoints.kafka import KafkaTopic
from penstock.endpoints.log import Log
from penstock.endpoints.memory import Memory, as_messages
from penstock.endpoints.simple import Frame, Rate
from penstock.errors import BadEndpoint, UnknownField
from penstock.message import Message
from penstock.plan.plan import Entry
from penstock.spark import frame
from penstock.spark.decode import decode, reads_nothing
from penstock.spark.read import files, logs
from penstock.spark.read.numbered import ROWS_PER_BATCH, StoredStream, numbered_source, rate_source
from penstock.spark.read.once import read_once
from penstock.spark.read.pieces import Pieces, PieceStream
from penstock.spark.read.rows import row_type
from penstock.spark.received import Arrival
from penstock.spark.types import spark_type

_BEGINNING = ".start"
_NULLS = {
    frame.HEADERS: "map<string, string>",
    frame.ATTACHMENTS: "map<string, binary>",
    frame.PARENT: "string",
    frame.INDEX: "bigint",
    frame.COUNT: "bigint",
}
_DEFAULTS = {
    frame.TOPIC: "''",
    frame.PARTITION: "0",
    frame.OFFSET: "0L",
    frame.TIME: "current_timestamp()",
}
_META = {
    frame.ID: "string",
    frame.HEADERS: "map<string, string>",
    frame.ATTACHMENTS: "map<string, binary>",
    frame.TOPIC: "string",
    frame.PARTITION: "int",
    frame.OFFSET: "bigint",
    frame.TIME: "timestamp",
}


@dataclass(frozen=True)
class Reading:
    """How a run reads its sources: once, or as a stream whose own notes are kept beside its checkpoint.

    A micro-batch has at most so many rows of sources that have numbers, and about so many bytes of files.
    """

    spark: SparkSession
    streaming: bool = False
    notes: str = ""
    rows_per_batch: int = ROWS_PER_BATCH
    bytes_per_batch: int = files.BYTES_PER_BATCH


def arriving(entry: Entry, reading: Reading) -> Arrival:
    """The messages of a source as rows with position, body and decoded fields."""
    source, label = entry.source, f"penstock_{uuid.uuid4().hex}"
    match source:
        case Files() | Log() | KafkaTopic():
            check_files([entry], reading.streaming)
            if not reading.streaming:
                return Arrival(_complete(read_once(reading.spark, label, entry, pieces_of(entry))), label)
            stream = stream_of(entry, reading)
            made = numbered_source(label, row_type(entry, stream.pieces.timed), None, lambda: stream)
            return Arrival(_complete(_read(reading, label, made)), label)
        case Rate():
            made = rate_source(label, entry, reading.rows_per_batch)
            return Arrival(_complete(_read(reading, label, made)), label)
        case Memory():
            return _decoded(_stored(source, entry, reading), entry, label)
        case Frame():
            return _decoded(_framed(source, entry, reading), entry, label)
        case Parquet():
            return Arrival(_parquet(source, entry, reading))
        case Table():
            return Arrival(_parquet(source.as_parquet(), entry, reading))
    known = "Files, Log, KafkaTopic, Parquet, Table, Memory, Rate or Frame"
    raise BadEndpoint(f"Spark cannot read {source}", fix=f"use {known}")


def pieces_of(entry: Entry) -> Pieces[Any]:
    """A source that tasks read piece by piece."""
    match entry.source:
        case Files():
            return files.FilePieces(entry)
        case Log():
            return logs.LogPieces(entry.source)
        case KafkaTopic():
            from penstock.spark.read import kafka

            return kafka.KafkaPieces(entry.source)
    raise AssertionError(entry.source)


def stream_of(entry: Entry, reading: Reading) -> PieceStream:
    """The same as a stream."""
    cores, note = reading.spark.sparkContext.defaultParallelism, os.path.join(reading.notes, entry.route)
    match entry.source:
        case Files():
            return files.FilesStream(entry, f"{note}.jsonl", reading.bytes_per_batch, cores)
        case Log():
            return logs.LogStream(entry, f"{note}{_BEGINNING}", reading.rows_per_batch, cores)
        case KafkaTopic():
            from penstock.spark.read import kafka

            return kafka.KafkaStream(entry, f"{note}{_BEGINNING}", reading.rows_per_batch, cores)
    raise AssertionError(entry.source)


def forget_beginnings(reading: Reading) -> None:
    """A stream whose position was deleted begins anew."""
    for path in glob.glob(os.path.join(glob.escape(reading.notes), f"*{_BEGINNING}")):
        os.remove(path)


def check_files(entries: Iterable[Entry], streaming: bool) -> None:
    for entry in entries:
        if isinstance(entry.source, Files):
            files.check(entry.source, entry, streaming)


def check_sources(entries: Iterable[Entry]) -> None:
    """What can be wrong with topics that are read, found before Spark starts."""
    entries = list(entries)
    logs.check(entries)
    if any(isinstance(entry.source, KafkaTopic) for entry in entries):
        from penstock.spark.read import kafka

        kafka.check(entries)


def gives_time(entry: Entry) -> bool:
    """Whether messages of this source have a time of their own; otherwise it is when their batch began."""
    source = entry.source
    if isinstance(source, (Log, KafkaTopic)):
        return True
    return isinstance(source, Frame) and source.column != frame.TIME and frame.TIME in source.dataframe.columns


def _read(reading: Reading, name: str, source: type[DataSource]) -> DataFrame:
    reading.spark.dataSource.register(source)
    reader = reading.spark.readStream if reading.streaming else reading.spark.read
    return reader.format(name).load()


def _complete(data: DataFrame) -> DataFrame:
    """The columns that a message has and this source does not give."""
    have = data.columns
    texts = {name: f"CAST(NULL AS {kind})" for name, kind in _NULLS.items()} | _DEFAULTS
    missing = {name: text for name, text in texts.items() if name not in have}
    parts = (missing.get(name, f"`{name}`") for name in (frame.TOPIC, frame.PARTITION, frame.OFFSET))
    if frame.ID not in have:
        missing[frame.ID] = f"concat_ws('/', {', '.join(f'CAST({part} AS STRING)' for part in parts)})"
    return data.selectExpr("*", *(f"{text} AS `{name}`" for name, text in missing.items()))


def _decoded(data: DataFrame, entry: Entry, label: str) -> Arrival:
    complete = _complete(data)
    if reads_nothing(entry):
        return Arrival(complete)
    return Arrival(decode(complete, entry, F.col(frame.BODY), label), label)


def _framed(source: Frame, entry: Entry, reading: Reading) -> DataFrame:
    data: DataFrame = source.dataframe
    if data.isStreaming != reading.streaming:
        kind, other = ("streaming", "batch") if data.isStreaming else ("batch", "streaming")
        raise BadEndpoint(
            f"route {entry.route!r} reads a {kind} DataFrame in a {other} run",
            fix="run it as a stream" if data.isStreaming else "make it with spark.readStream",
        )
    if source.column not in data.columns:
        raise UnknownField(
            f"the DataFrame of route {entry.route!r} has no column {source.column!r}",
            fix=f"name the column with the raw bodies; it has {', '.join(data.columns)}",
        )
    given = {field.name: field.dataType.simpleString() for field in data.schema.fields}
    _check_type(entry, source.column, given[source.column], ("string", "binary"))
    if frame.HEADERS in given:
        _check_type(entry, frame.HEADERS, given[frame.HEADERS], ("map<string,string>",))
    names = [name for name in data.columns if name in _META and name != source.column]
    kept = {name: F.col(f"`{name}`").cast(_META[name]) for name in names}
    if frame.OFFSET in kept:
        kept[frame.OFFSET] = F.coalesce(kept[frame.OFFSET], F.lit(0))
    raw = F.col(f"`{source.column}`").cast("binary")
    made = {frame.BODY: F.coalesce(raw, F.lit(b""))}
    if frame.ID not in kept and frame.OFFSET not in kept:
        made |= _numbered(raw, reading.streaming)
    return data.select(*(column.alias(name) for name, column in (made | kept).items()))


def _numbered(body: Column, streaming: bool) -> dict[str, Column]:
    """Where a row stands. A stream has no row numbers that a replay would give again: there it is the body's hash."""
    if streaming:
        return {frame.OFFSET: F.pmod(F.xxhash64(body), F.lit(1 << 62))}
    number = F.monotonically_increasing_id()
    return {
        frame.PARTITION: F.shiftright(number, 33).cast("int"),
        frame.OFFSET: number.bitwiseAND(F.lit((1 << 33) - 1)),
    }


def _check_type(entry: Entry, column: str, found: str, wanted: tuple[str, ...]) -> None:
    if found not in wanted:
        raise BadEndpoint(
            f"column {column!r} of the DataFrame of route {entry.route!r} is {found}, not {' or '.join(wanted)}",
            fix="cast it before, or name another column",
        )


def stored_schema() -> pa.Schema:
    return pa.schema(
        [
            (frame.ID, pa.string()),
            (frame.HEADERS, pa.map_(pa.string(), pa.string())),
            (frame.ATTACHMENTS, pa.map_(pa.string(), pa.binary())),
            (frame.BODY, pa.binary()),
            (frame.TOPIC, pa.string()),
            (frame.PARTITION, pa.int32()),
            (frame.OFFSET, pa.int64()),
        ]
    )


def _stored(source: Memory, entry: Entry, reading: Reading) -> DataFrame:
    table = pa.Table.from_pylist(
        [_row(message) for message in as_messages(source.messages, entry.route)], schema=stored_schema()
    )
    if not reading.streaming:
        data = reading.spark.createDataFrame(table)
        if source.partitions == 1:
            return data.coalesce(1)
        return data.repartitionByRange(source.partitions, frame.OFFSET).sortWithinPartitions(frame.OFFSET)
    os.makedirs(reading.notes, exist_ok=True)
    path = os.path.join(reading.notes, f"memory-{entry.route}.arrow")
    with pa.ipc.new_file(path, table.schema.with_metadata({"rows": str(len(table))})) as writer:
        writer.write_table(table.combine_chunks())
    spark_schema = from_arrow_schema(stored_schema())
    rows, parts, name = reading.rows_per_batch, source.partitions, f"penstock_{uuid.uuid4().hex}"
    return _read(reading, name, numbered_source(name, spark_schema, None, lambda: StoredStream(path, rows, parts)))


def _row(message: Message) -> dict[str, object]:
    return {
        frame.ID: message.id,
        frame.HEADERS: list(message.headers.items()) or None,
        frame.ATTACHMENTS: list(message.attachments.items()) or None,
        frame.BODY: message.raw,
        frame.TOPIC: message.position.topic,
        frame.PARTITION: message.position.partition,
        frame.OFFSET: message.position.offset,
    }


def _parquet(source: Parquet, entry: Entry, reading: Reading) -> DataFrame:
    """Typed columns need no decoder; the raw body is their JSON."""
    if not os.path.exists(source.path):
        raise BadEndpoint(f"route {entry.route!r} reads {source.path}, and there is no such file")
    schema = entry.format.schema
    limited = reading.spark.readStream.option("maxBytesPerTrigger", reading.bytes_per_batch)
    reader = limited if reading.streaming else reading.spark.read
    data = reader.schema(spark_type(schema)).parquet(os.path.abspath(source.path))  # type: ignore[arg-type]
    whole = F.struct(*(F.col(f"`{name}`") for name in schema.names))
    wanted = [
        F.col(f"`{name}`").alias(frame.field_column(index)) for index, name in enumerate(entry.scope.wanted.names)
    ]
    path, prefix = F.col("_metadata.file_path"), f"file://{os.path.abspath(source.path)}/"
    rows = data.select(
        F.to_json(whole).cast("binary").alias(frame.BODY),
        F.when(path.startswith(prefix), F.substring(path, len(prefix) + 1, 1 << 20)).otherwise(path).alias(frame.TOPIC),
        F.lit(0).alias(frame.PARTITION),
        F.col("_metadata.row_index").alias(frame.OFFSET),
        *wanted,
    )
    return _complete(rows)

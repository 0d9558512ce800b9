"""Find how each source of an app is read, in batch and as a stream, and check before the run that it can be."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.endpoints.files import Files, Parquet, Table
from penstock.endpoints.kafka import EARLIEST, KafkaTopic
from penstock.endpoints.log import Log
from penstock.endpoints.memory import Memory
from penstock.endpoints.simple import Frame, Rate
from penstock.envelope import TIME
from penstock.errors import BadEndpoint
from penstock.plan.plan import Entry
from penstock.spark.read import beginnings, files, logs, parquet
from penstock.spark.read.dataframes import FramePieces
from penstock.spark.read.memory import MemoryPieces, StoredStream
from penstock.spark.read.pieces import Pieces, PieceStream
from penstock.spark.read.rate import RatePieces, RateStream
from penstock.spark.read.source import ROWS_PER_BATCH

_BEGINNING = ".start"


@dataclass(frozen=True)
class Reading:
    """How a stream reads its sources; `notes` is a directory of its own beside the checkpoint.

    A micro-batch has at most `rows_per_batch` messages of sources that count them, and about `bytes_per_batch` of
    files.
    """

    spark: SparkSession
    notes: str
    rows_per_batch: int = ROWS_PER_BATCH
    bytes_per_batch: int = files.BYTES_PER_BATCH


def pieces_of(entry: Entry) -> Pieces[Any]:
    """The source as pieces that tasks read."""
    match entry.source:
        case Files():
            return files.FilePieces(entry)
        case Log():
            return logs.LogPieces(entry.source)
        case Memory():
            return MemoryPieces(entry.source, entry.route)
        case Parquet() | Table():
            return parquet.ParquetPieces(entry)
        case Frame():
            return FramePieces(entry)
        case Rate():
            return RatePieces(entry.source)
        case KafkaTopic():
            from penstock.spark.read import kafka

            return kafka.KafkaPieces(entry.source)
    known = "Files, Log, KafkaTopic, Parquet, Table, Memory, Rate or Frame"
    raise BadEndpoint(f"Spark cannot read {entry.source}", fix=f"use {known}")


def stream_of(entry: Entry, reading: Reading) -> PieceStream:
    """The source as a stream of pieces."""
    cores, note = reading.spark.sparkContext.defaultParallelism, os.path.join(reading.notes, entry.route)
    match entry.source:
        case Files() | Parquet() | Table():
            pieces = files.FilePieces(entry) if isinstance(entry.source, Files) else parquet.ParquetPieces(entry)
            return files.FilesStream(pieces, f"{note}.jsonl", reading.bytes_per_batch)
        case Log():
            return logs.LogStream(entry, f"{note}{_BEGINNING}", reading.rows_per_batch, cores)
        case Memory():
            path = os.path.join(reading.notes, f"memory-{entry.route}.arrow")
            return StoredStream(entry, path, reading.rows_per_batch)
        case Rate():
            return RateStream(entry, reading.rows_per_batch, cores)
        case KafkaTopic():
            from penstock.spark.read import kafka

            return kafka.KafkaStream(entry, f"{note}{_BEGINNING}", reading.rows_per_batch, cores)
    raise AssertionError(entry.source)


def check_beginnings(entries: Iterable[Entry], reading: Reading, has_begun: bool, has_batches: bool) -> None:
    """Forget where the stream began if its position was deleted; else check that it still reads the same topics."""
    if not has_begun:
        for path in glob.glob(os.path.join(glob.escape(reading.notes), f"*{_BEGINNING}")):
            os.remove(path)
    for entry in entries:
        if isinstance(entry.source, (Log, KafkaTopic)):
            start = str(entry.source.start) if isinstance(entry.source, KafkaTopic) else EARLIEST
            note = os.path.join(reading.notes, f"{entry.route}{_BEGINNING}")
            beginnings.check(note, entry.route, entry.source.topic, start, has_batches)


def check_files(entries: Iterable[Entry], streaming: bool) -> None:
    for entry in entries:
        if isinstance(entry.source, Files):
            files.check(entry.source, entry, streaming)
        elif isinstance(entry.source, (Parquet, Table)):
            parquet.check(entry)


def check_sources(entries: Iterable[Entry]) -> None:
    """Raise what is wrong with topics that are read, before Spark starts."""
    entries = list(entries)
    logs.check(entries)
    if any(isinstance(entry.source, KafkaTopic) for entry in entries):
        from penstock.spark.read import kafka

        kafka.check(entries)


def gives_time(entry: Entry) -> bool:
    """Whether messages of this source have times of their own; otherwise their time is that of the batch."""
    source = entry.source
    if isinstance(source, (Log, KafkaTopic)):
        return True
    return isinstance(source, Frame) and source.column != TIME and TIME in source.dataframe.columns

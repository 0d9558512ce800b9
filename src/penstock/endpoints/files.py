"""Files: lines of JSON, text or CSV, XML documents, and Parquet tables."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.delivery import IN_ORDER
from penstock.endpoints.base import Sink, Source
from penstock.errors import BadEndpoint, BadSchema, did_you_mean
from penstock.formats import Format, Json, Text
from penstock.formats.jsonfiles import RECORDS
from penstock.schema import STRING, Array, Map, SchemaLike, Struct, Type, schema

APPEND, OVERWRITE = "append", "overwrite"
ADDED = ("_id", "_time", "_parent", "_index", "_count", "_headers")
"""The columns that a Parquet sink adds to the fields of the body."""


@dataclass(frozen=True, slots=True)
class Files(Source, Sink):
    """A file, a directory or a glob as a source; a directory as a sink.

    JSON, text and CSV hold one message per line. XML holds one message per file, or one per `record` element.
    `records` says that files of JSON are "lines", one "array" or one "document"; otherwise each tells by how it begins.
    As a sink, `format` None keeps bodies that nothing rewrote as they are and writes the others as JSON.
    `mode` says what a new batch run does with files of earlier runs; a stream always continues.
    """

    path: str
    format: Format | None = None
    record: str | None = None
    mode: str = APPEND
    records: str | None = None

    kind: ClassVar[str] = "files"
    guarantee: ClassVar[str] = "a replayed batch replaces its own files"
    delivery: ClassVar[str] = IN_ORDER

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", os.fspath(self.path))
        if self.mode not in (APPEND, OVERWRITE):
            raise BadEndpoint(f"mode={self.mode!r} is not a mode", fix="write mode='append' or mode='overwrite'")
        records = self.records
        if records is not None and records not in RECORDS:
            raise BadEndpoint(f"records={records!r} is not a kind of file", fix=did_you_mean(records, RECORDS))
        if records is not None and not isinstance(self.format, Json):
            raise BadEndpoint(f"records={records!r} is for files of JSON", fix="add format=Json(...), or leave it out")

    @property
    def body_format(self) -> Format:
        return self.format or Text()

    def __str__(self) -> str:
        return f"files {self.path}"


@dataclass(frozen=True, slots=True)
class Parquet(Source, Sink):
    """A Parquet table. As a source its columns are the body; as a sink it also holds id, time, headers and lineage."""

    path: str
    schema: SchemaLike | None = None
    mode: str = APPEND

    kind: ClassVar[str] = "parquet"
    guarantee: ClassVar[str] = "a replayed batch replaces its own files"
    delivery: ClassVar[str] = IN_ORDER
    columns: ClassVar[bool] = True
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", os.fspath(self.path))
        object.__setattr__(self, "schema", None if self.schema is None else schema(self.schema))
        if self.mode not in (APPEND, OVERWRITE):
            raise BadEndpoint(f"mode={self.mode!r} is not a mode", fix="write mode='append' or mode='overwrite'")

    @property
    def body_format(self) -> Format:
        declared = self.schema
        assert declared is None or isinstance(declared, Struct)
        return Json(parquet_schema(self.path, declared))

    def __str__(self) -> str:
        return f"parquet {self.path}"


def parquet_schema(path: str, declared: Struct | None) -> Struct:
    """The declared schema if the first file fits it, else that file's columns but for those a sink added."""
    import pyarrow.parquet

    found = find_files(path, ".parquet")
    if not found and declared is None:
        raise BadEndpoint(f"there is no Parquet file at {path}", fix="check the path, or give the schema")
    if not found:
        assert declared is not None
        return declared
    try:
        columns = pyarrow.parquet.read_schema(found[0])
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise BadEndpoint(f"cannot read {found[0]}: {error}") from None
    if declared is None:
        return Struct(tuple((column.name, _held(column, found[0])) for column in columns if column.name not in ADDED))
    check_columns(columns, found[0], declared)
    return declared


def check_columns(columns: Iterable[Any], path: str, declared: Struct) -> None:
    """The columns of a file have the types of the schema, as far as it names them."""
    for column in columns:
        kind = declared.get(column.name)
        if kind is not None and not _fits(kind, stored := _held(column, path)):
            raise BadSchema(f"column {column.name!r} of {path} is {stored}, but the schema says {kind}")


def _held(column: Any, path: str) -> Type:
    from penstock.endpoints.lookup import arrow_schema

    kind = dict(arrow_schema([column]).fields)[column.name]
    if kind == STRING and str(column.type) not in ("string", "large_string"):
        raise BadSchema(f"column {column.name!r} of {path} is {column.type}, which a body cannot hold",
                        fix="give a schema without it, or store it as text or a number")  # fmt: skip
    return kind


def _fits(declared: Type, stored: Type) -> bool:
    if isinstance(declared, Struct) and isinstance(stored, Struct):
        return all(_fits(kind, stored.get(name) or kind) for name, kind in declared.fields)
    if isinstance(declared, Array) and isinstance(stored, Array):
        return _fits(declared.element, stored.element)
    if isinstance(declared, Map) and isinstance(stored, Map):
        return _fits(declared.value, stored.value)
    return declared == stored


def find_files(path: str, ending: str = "") -> list[str]:
    """The files behind a path: itself, those of a directory (not hidden, not temporary), or a glob's."""
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if not name.startswith(("_", ".")) and name.endswith(ending))
        return [full for name in names if os.path.isfile(full := os.path.join(path, name))]
    if os.path.isfile(path):
        return [path]
    return sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))


def root_of(path: str) -> str:
    """The directory that the names of a source's files are told from."""
    if os.path.isdir(path):
        return path
    while "*" in path or "?" in path or "[" in path:
        path = os.path.dirname(path)
    return os.path.dirname(path) if os.path.isfile(path) else path


@dataclass(frozen=True, slots=True)
class Table(Source, Sink):
    """A named table of messages in the warehouse directory: Parquet files, no server."""

    name: str
    schema: SchemaLike | None = None
    mode: str = APPEND
    warehouse: str = "penstock-warehouse"

    kind: ClassVar[str] = "table"
    guarantee: ClassVar[str] = "a replayed batch replaces its own files"
    delivery: ClassVar[str] = IN_ORDER
    columns: ClassVar[bool] = True
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", None if self.schema is None else schema(self.schema))
        if not self.name.replace("_", "").isalnum():
            raise BadEndpoint(f"{self.name!r} is not a table name", fix="use letters, digits and underscores")

    @property
    def path(self) -> str:
        return os.path.join(self.warehouse, self.name)

    def as_parquet(self) -> Parquet:
        return Parquet(self.path, self.schema, self.mode)

    @property
    def body_format(self) -> Format:
        return self.as_parquet().body_format

    def __str__(self) -> str:
        return f"table {self.name}"

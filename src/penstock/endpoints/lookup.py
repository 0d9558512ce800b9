"""A table that messages are enriched from: rows found by one key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from penstock.errors import BadEndpoint, did_you_mean
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Array, Map, Struct, Type

SMALL_BYTES = 64 * 1024 * 1024


class LookupTable:
    """Rows by key, read once when the route is built. Keys are unique; rows without a key are never found."""

    def __init__(self, table: pyarrow.Table, key: str, name: str, path: str | None = None) -> None:
        if key not in table.column_names:
            raise BadEndpoint(f"the table {name} has no column {key!r}", fix=did_you_mean(key, table.column_names))
        kinds = arrow_schema(table.schema)
        self.table = table.cast(_plain(table.schema)).filter(pyarrow.compute.is_valid(table[key]))
        self.key, self.name, self.schema, self.path = key, name, kinds, path
        counts = pyarrow.compute.value_counts(self.table[key].combine_chunks())
        for entry in counts:
            if entry["counts"].as_py() > 1:
                raise BadEndpoint(f"the table {name} has {entry['counts']} rows for {key} = {entry['values']}",
                                  fix="a message is enriched by one row: make the key unique")  # fmt: skip

    @property
    def is_small(self) -> bool:
        """Every task can hold it, so that messages stay where they are."""
        return bool(self.table.nbytes <= SMALL_BYTES)

    @property
    def key_type(self) -> Type:
        kind = self.schema.get(self.key)
        assert kind is not None
        return kind

    @cached_property
    def rows(self) -> Mapping[Any, Mapping[str, Any]]:
        """The table as the reference reads it."""
        return {row[self.key]: row for row in self.table.to_pylist()}

    def __str__(self) -> str:
        return self.name


def lookup_table(
    source: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | pyarrow.Table, key: str, name: str = ""
) -> LookupTable:
    """A table from a .csv, .parquet or .jsonl file, a list of dicts, or an Arrow table."""
    if isinstance(source, pyarrow.Table):
        return LookupTable(source, key, name or "table")
    if not isinstance(source, (str, os.PathLike)):
        return LookupTable(_listed(source, name or "table"), key, name or "table")
    path = os.fspath(source)
    readers = {".csv": pyarrow.csv.read_csv, ".parquet": pyarrow.parquet.read_table,
               ".jsonl": pyarrow.json.read_json, ".json": pyarrow.json.read_json}  # fmt: skip
    reader = readers.get(os.path.splitext(path)[1])
    if reader is None:
        raise BadEndpoint(f"cannot read the table {path}", fix="use a .csv, .parquet or .jsonl file")
    try:
        table = reader(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise BadEndpoint(f"cannot read the table {path}: {error}") from None
    return LookupTable(table, key, name or os.path.basename(path), path)


def _listed(rows: Iterable[Mapping[str, Any]], name: str) -> pyarrow.Table:
    try:
        return pyarrow.Table.from_pylist([dict(row) for row in rows])
    except pyarrow.ArrowException as error:
        raise BadEndpoint(f"the rows of {name} do not make a table: {error}", fix="give a column one type") from None


def _plain(schema: pyarrow.Schema) -> pyarrow.Schema:
    """The same columns in the types that bodies have; dates and decimals become text."""
    from penstock.formats.arrow import arrow_type

    return pyarrow.schema([(field.name, arrow_type(_type_of(field.type))) for field in schema])


def arrow_schema(schema: pyarrow.Schema) -> Struct:
    return Struct(tuple((field.name, _type_of(field.type)) for field in schema))


def _type_of(kind: pyarrow.DataType) -> Type:
    if pyarrow.types.is_integer(kind):
        return INTEGER
    if pyarrow.types.is_floating(kind):
        return DOUBLE
    if pyarrow.types.is_boolean(kind):
        return BOOLEAN
    if pyarrow.types.is_struct(kind):
        return Struct(tuple((inner.name, _type_of(inner.type)) for inner in kind))
    if pyarrow.types.is_map(kind):
        return Map(_type_of(kind.item_type))
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        return Array(_type_of(kind.value_type))
    return STRING

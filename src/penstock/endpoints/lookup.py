"""Lookup tables: rows, found by one key, that messages are enriched from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from penstock.endpoints.searchable import Searchable
from penstock.errors import BadEndpoint, did_you_mean
from penstock.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Array,
    DecimalType,
    Map,
    Scalar,
    Struct,
    Type,
)
from penstock.values import MOST_DIGITS

SMALL_BYTES = 1024 * 1024
"""More than this is not worth sending with every batch."""

_BYTES = (pyarrow.types.is_binary, pyarrow.types.is_large_binary, pyarrow.types.is_fixed_size_binary)


class LookupTable:
    """Rows by key, read once when the route is built. Keys are unique; rows without a key are never found.

    A task holds a small one in its memory. A large one is in a file, where tasks see only what they look for.
    """

    def __init__(self, table: pyarrow.Table, key: str, name: str, path: str | None = None) -> None:
        if key not in table.column_names:
            raise BadEndpoint(f"the table {name} has no column {key!r}", fix=did_you_mean(key, table.column_names))
        self.key, self.name, self.schema, self.path = key, name, arrow_schema(table.schema), path
        if not isinstance(self.key_type, (Scalar, DecimalType)):
            raise BadEndpoint(f"the key {key} of the table {name} is {self.key_type}",
                              fix="find rows by a column of text, numbers or booleans")  # fmt: skip
        self._file: Callable[[], str] | None = None
        self._held: Searchable | None = Searchable.of(_plain(table, self.schema), key)
        if twice := self._held.twice():
            value, count = twice
            raise BadEndpoint(f"the table {name} has {count} rows for {key} = {value}",
                              fix="a message is enriched by one row: make the key unique")  # fmt: skip

    def in_file(self, file: Callable[[], str]) -> LookupTable:
        """The same table where `searchable` was written to a file; whoever needs it asks for the path where he is."""
        other = copy(self)
        other._file, other._held = file, None
        return other

    @property
    def searchable(self) -> Searchable:
        if self._held is None:
            assert self._file is not None
            self._held = Searchable.mapped(self._file(), self.key)
        return self._held

    @property
    def table(self) -> pyarrow.Table:
        return self.searchable.table

    @property
    def is_small(self) -> bool:
        """Whether it travels with the plan."""
        return bool(self.table.nbytes <= SMALL_BYTES)

    @property
    def key_type(self) -> Type:
        kind = self.schema.get(self.key)
        assert kind is not None
        return kind

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "rows"}
        return state if self._file is None else state | {"_held": None}

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


def _plain(table: pyarrow.Table, kinds: Struct) -> pyarrow.Table:
    """The same columns in the types that bodies have; instants lose what is less than a microsecond."""
    from penstock.formats.arrow import arrow_type

    columns = [table[name].cast(arrow_type(kind), safe=kind != TIMESTAMP) for name, kind in kinds.fields]
    return pyarrow.table(columns, names=list(kinds.names))


def arrow_schema(schema: pyarrow.Schema) -> Struct:
    return Struct(tuple((field.name, _type_of(field.type)) for field in schema))


def _type_of(kind: pyarrow.DataType) -> Type:
    if pyarrow.types.is_integer(kind):
        return INTEGER
    if pyarrow.types.is_floating(kind):
        return DOUBLE
    if pyarrow.types.is_boolean(kind):
        return BOOLEAN
    if pyarrow.types.is_date(kind):
        return DATE
    if pyarrow.types.is_timestamp(kind) and kind.tz is not None:
        return TIMESTAMP
    if pyarrow.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= MOST_DIGITS:
        return DecimalType(kind.precision, kind.scale)
    if any(test(kind) for test in _BYTES):
        return BINARY
    if pyarrow.types.is_struct(kind):
        return Struct(tuple((inner.name, _type_of(inner.type)) for inner in kind))
    if pyarrow.types.is_map(kind):
        return Map(_type_of(kind.item_type))
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        return Array(_type_of(kind.value_type))
    return STRING

"""The interface of patterns that remember: arrivals and state of some keys in, rows to send on and new state out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from penstock.kernel.state.keys import Keys

SECOND = 1_000_000
"""Clocks and deadlines are whole microseconds."""


@dataclass(frozen=True)
class Moment:
    """The clock of a batch in microseconds, its number, and whether the run ends with it.

    Inside a task, `find` looks up the rows of the bucket's state under these keys, which must be sorted and distinct.
    """

    now: int
    batch: int
    stops: bool
    find: Callable[[Keys], pa.Table] | None = None


@dataclass
class Outcome:
    """Rows that go on, the new state of the keys that were touched, and by how many messages merging made them fewer.

    Keys that had state and are neither in `state` nor in `unchanged` have none from now on.
    """

    out: list[pa.Table]
    state: pa.Table
    merged: int = 0
    unchanged: Keys = field(default_factory=Keys.none)


class Algorithm(Protocol):
    """Works on the arrivals of some keys, sorted by key, and on the rows that the state has for these keys."""

    @property
    def payload(self) -> pa.Schema: ...

    def alive(self, held: pa.Table, now: int) -> pa.ChunkedArray:
        """Which rows of the state are still needed when its files are merged."""

    def __call__(self, held: pa.Table, rows: pa.Table, moment: Moment) -> Outcome: ...


def filled(schema: pa.Schema, count: int, columns: pa.Table | Mapping[str, Any]) -> pa.Table:
    """A table of this schema with these columns; the other columns are null."""
    names = columns.column_names if isinstance(columns, pa.Table) else list(columns)
    arrays = []
    for known in schema:
        if known.name in names:
            column = columns[known.name]
            arrays.append(column if column.type == known.type else column.cast(known.type))
        else:
            arrays.append(pa.nulls(count, known.type))
    return pa.table(arrays, schema=schema)

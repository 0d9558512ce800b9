"""What every pattern that remembers is, for those who run it."""

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
    """When a batch is computed: its clock in microseconds, its number, and whether the run ends with it.

    `find` gives, inside a task, the rows that its bucket holds under keys, which are sorted and distinct.
    """

    now: int
    batch: int
    stops: bool
    find: Callable[[Keys], pa.Table] | None = None


@dataclass
class Outcome:
    """Rows that go on, what the touched keys hold from now on, and how many messages became fewer by merging.

    Keys that held something and are neither in `state` nor `unchanged` hold nothing any more.
    """

    out: list[pa.Table]
    state: pa.Table
    merged: int = 0
    unchanged: Keys = field(default_factory=Keys.none)


class Algorithm(Protocol):
    """What a pattern does with the arrivals of some keys, sorted by key, and with what these keys hold."""

    @property
    def payload(self) -> pa.Schema: ...

    def alive(self, held: pa.Table, now: int) -> pa.ChunkedArray:
        """Which rows must be kept when files are merged."""

    def __call__(self, held: pa.Table, rows: pa.Table, moment: Moment) -> Outcome: ...


def filled(schema: pa.Schema, count: int, columns: pa.Table | Mapping[str, Any]) -> pa.Table:
    """A table of this schema: the given columns, nulls elsewhere."""
    names = columns.column_names if isinstance(columns, pa.Table) else list(columns)
    arrays = []
    for known in schema:
        if known.name in names:
            column = columns[known.name]
            arrays.append(column if column.type == known.type else column.cast(known.type))
        else:
            arrays.append(pa.nulls(count, known.type))
    return pa.table(arrays, schema=schema)

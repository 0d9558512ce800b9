"""Make one body of the members of a group, by the strategy of the aggregator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.envelope import BODY, TIME
from penstock.kernel.state.keys import Flags, Numbers, ranges
from penstock.kernel.state.members import CHAPTERS, chapters_after
from penstock.kernel.state.reduce import (
    FIRST,
    LAST,
    SUM,
    exact_means,
    last_present,
    lists,
    overflows,
    reduced,
    rough,
    too_long,
)
from penstock.kernel.state.rows import GROUP_SIZE, replaced
from penstock.kernel.state.store import WEIGHT
from penstock.patterns.strategy import AGGREGATE_FAILED, FOLD_FAILED, overflow_reason


@dataclass(frozen=True)
class Made:
    """Rows with the new bodies, and the groups that failed: their numbers, the error, and a reason for each."""

    rows: pa.Table
    failed: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    error: str = ""
    reasons: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))


class Assembly(Protocol):
    @property
    def state(self) -> pa.Schema: ...

    def members(self, rows: pa.Table) -> dict[str, Any]: ...

    def put_together(self, rows: pa.Table, starts: Numbers, ends: Numbers, columns: Mapping[str, Any]) -> Made: ...

    def compacted(self, rows: pa.Table, starts: Numbers, ends: Numbers) -> tuple[pa.Table, Numbers]: ...


@dataclass(frozen=True)
class _OfValues:
    """Strategies that need the members' bodies: struct column `value` comes in, struct column `after` goes out."""

    value: pa.Field
    after: pa.Field

    @property
    def state(self) -> pa.Schema:
        return pa.schema([self.value])

    def members(self, rows: pa.Table) -> dict[str, Any]:
        return {self.value.name: rows.column(self.value.name)}

    def compacted(self, rows: pa.Table, starts: Numbers, ends: Numbers) -> tuple[pa.Table, Numbers]:
        return rows.take(pa.array(ranges(starts, ends - starts))), ends - starts

    def _values(self, rows: pa.Table) -> pa.StructArray:
        return rows.column(self.value.name).combine_chunks()


@dataclass(frozen=True)
class Collecting(_OfValues):
    into: str
    of: str | None
    head: tuple[str, ...]
    tail: tuple[str, ...]

    def put_together(self, rows: pa.Table, starts: Numbers, ends: Numbers, columns: Mapping[str, Any]) -> Made:
        values = self._values(rows)
        wanted = set(self.after.type.names)
        fields: dict[str, pa.Array] = {}
        if self.into in wanted:
            fields[self.into] = lists(values.field(self.of) if self.of else values, starts, ends)
        fields |= {name: reduced(FIRST, values.field(name), starts, ends) for name in self.head if name in wanted}
        fields |= {name: reduced(LAST, values.field(name), starts, ends) for name in self.tail if name in wanted}
        return Made(_rows(self.after, fields, columns, len(starts)))


@dataclass(frozen=True)
class Uniting(_OfValues):
    """Of every field the last value that is not null; with `latest`, the body of the last message."""

    latest: bool

    def put_together(self, rows: pa.Table, starts: Numbers, ends: Numbers, columns: Mapping[str, Any]) -> Made:
        united = self._united(rows, starts, ends)
        fields = {kind.name: united.field(kind.name) for kind in self.after.type}
        return Made(_rows(self.after, fields, columns, len(starts)))

    def compacted(self, rows: pa.Table, starts: Numbers, ends: Numbers) -> tuple[pa.Table, Numbers]:
        return _one_each(rows, starts, ends, {self.value.name: self._united(rows, starts, ends)})

    def _united(self, rows: pa.Table, starts: Numbers, ends: Numbers) -> pa.StructArray:
        values = self._values(rows)
        if self.latest or not values.type.num_fields:
            return reduced(LAST, values, starts, ends)
        arrays = [last_present(values.field(kind.name), starts, ends) for kind in values.type]
        return pa.StructArray.from_arrays(arrays, fields=list(values.type))


@dataclass(frozen=True)
class Calling(_OfValues):
    """Calls the user's function, once per group."""

    function: Callable[[pa.Table], pa.Table]
    returns: pa.Schema

    def put_together(self, rows: pa.Table, starts: Numbers, ends: Numbers, columns: Mapping[str, Any]) -> Made:
        values = self._values(rows)
        answers: list[dict[str, Any]] = []
        failed: dict[int, str] = {}
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            members = pa.Table.from_struct_array(values.slice(start, end - start))
            try:
                answers.append(one_row(self.function(members), self.returns))
            except Exception as error:
                failed[number] = f"{type(error).__name__}: {error}"
        good = np.setdiff1d(np.arange(len(starts)), list(failed))
        table = pa.Table.from_pylist(answers, self.returns)
        fields = {name: table.column(name).combine_chunks() for name in self.returns.names}
        chosen = {name: column.take(pa.array(good)) for name, column in columns.items()}
        made, lost = _rows(self.after, fields, chosen, len(good)), np.array(list(failed), np.int64)
        return Made(made, lost, AGGREGATE_FAILED, pa.array(failed.values(), pa.string()))


@dataclass(frozen=True)
class Partial:
    """A running value of a fold, as a column of its group's row; with `present` it counts values that are not null."""

    name: str
    operation: str
    source: str
    kind: pa.DataType
    present: bool = False


@dataclass(frozen=True)
class Result:
    """A field of a fold's body: one running value, the quotient of two, or the number of members."""

    name: str
    partials: tuple[str, ...]


@dataclass(frozen=True)
class Folding:
    """Keeps running values instead of messages, so that an open group is one row.

    Where a sum may overflow, the members are stored beside that row (`members.py`), because they become dead letters
    then. `value` is the field with the members' bodies, where these may be needed again.
    """

    after: pa.Field
    partials: tuple[Partial, ...]
    results: tuple[Result, ...]
    value: pa.Field | None = None

    @property
    def may_fail(self) -> bool:
        """Whether a group may fail: only a sum can be too large."""
        return any(partial.operation == SUM and not partial.present for partial in self.partials)

    @property
    def state(self) -> pa.Schema:
        numbers = [pa.field(partial.name, partial.kind) for partial in self.partials]
        aside = [pa.field(CHAPTERS, pa.int64())] if self.may_fail else []
        return pa.schema([*numbers, *aside, *([self.value] if self.value is not None else [])])

    def members(self, rows: pa.Table) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        if self.value is not None:
            columns[self.value.name] = rows.column(self.value.name)
        if self.may_fail:
            columns[CHAPTERS] = pa.array(np.zeros(len(rows), np.int64))
        for partial in self.partials:
            source = rows.column(partial.source)
            columns[partial.name] = (
                source.is_valid().cast(pa.int64()) if partial.present else source.cast(partial.kind, safe=False)
            )
        return columns

    def put_together(self, rows: pa.Table, starts: Numbers, ends: Numbers, columns: Mapping[str, Any]) -> Made:
        folded = self._folded(rows, starts, ends)
        fields = {result.name: self._result(result, folded, columns) for result in self.results}
        broken, reasons = self._overflows(len(starts), folded, fields)
        made = _rows(self.after, fields, columns, len(starts))
        if not broken.any():
            return Made(made)
        lost = reasons.filter(pa.array(broken))
        return Made(made.filter(pa.array(~broken)), np.flatnonzero(broken), FOLD_FAILED, lost)

    def compacted(self, rows: pa.Table, starts: Numbers, ends: Numbers) -> tuple[pa.Table, Numbers]:
        values = self._folded(rows, starts, ends)
        if self.may_fail:
            values[CHAPTERS] = chapters_after(rows, starts, ends)
            aside = {BODY, self.value.name if self.value is not None else ""}
            values |= {part.name: pa.nulls(len(starts), part.type) for part in rows.schema if part.name in aside}
        return _one_each(rows, starts, ends, values)

    def _folded(self, rows: pa.Table, starts: Numbers, ends: Numbers) -> dict[str, pa.Array]:
        return {
            partial.name: reduced(partial.operation, rows.column(partial.name).combine_chunks(), starts, ends)
            for partial in self.partials
        }

    def _overflows(self, count: int, folded: Mapping[str, pa.Array], fields: dict[str, Any]) -> tuple[Flags, pa.Array]:
        """Which groups have a result that does not fit, and a reason with the first such result; it becomes null."""
        operations = {partial.name: partial.operation for partial in self.partials}
        found = np.zeros(count, bool)
        reasons: pa.Array = pa.nulls(count, pa.string())
        for result in self.results:
            if not result.partials or operations[result.partials[0]] != SUM:
                continue
            values, name = fields[result.name], result.partials[0]
            if rough(name) in folded:
                broken = overflows(folded[name], folded[rough(name)])
            elif pa.types.is_floating(values.type):
                broken = pc.invert(pc.is_finite(values.fill_null(0.0))).to_numpy(zero_copy_only=False)
            elif pa.types.is_decimal(values.type):
                broken = too_long(values)
            else:
                continue  # a count
            fields[result.name] = pc.if_else(pa.array(broken), pa.scalar(None, values.type), values)
            said = pa.scalar(overflow_reason(result.name))
            reasons = pc.if_else(pa.array(broken & ~found), said, reasons)
            found |= broken
        return found, reasons

    def _result(self, result: Result, folded: Mapping[str, pa.Array], columns: Mapping[str, Any]) -> pa.Array:
        if not result.partials:
            return columns[GROUP_SIZE]
        if len(result.partials) == 1:
            return folded[result.partials[0]]
        if pa.types.is_decimal(folded[result.partials[0]].type):
            return exact_means(*(folded[name] for name in result.partials))
        total, count = (folded[name].cast(pa.float64(), safe=False) for name in result.partials)
        return pc.if_else(pc.greater(count, 0), pc.divide(total, count), pa.scalar(None, pa.float64()))


def _rows(after: pa.Field, fields: Mapping[str, pa.Array], columns: Mapping[str, Any], count: int) -> pa.Table:
    """So many rows with these columns, and the fields as the body `after`."""
    kinds = list(after.type)
    arrays = [fields[kind.name].cast(kind.type) for kind in kinds]
    body = pa.StructArray.from_arrays(arrays, fields=kinds) if kinds else pa.array([{}] * count, after.type)
    return pa.table({**columns, after.name: body})


def one_row(result: pa.Table, returns: pa.Schema) -> dict[str, Any]:
    """The row that the user's function made of a group; raises ValueError when it is not as declared."""
    if result.num_rows != 1:
        raise ValueError(f"one row was expected, and {result.num_rows} came back")
    row: dict[str, Any] = result.select(returns.names).cast(returns).to_pylist()[0]
    return row


def _one_each(
    rows: pa.Table, starts: Numbers, ends: Numbers, values: Mapping[str, pa.Array]
) -> tuple[pa.Table, Numbers]:
    """One row per group: its first member's, with the reduced values, the sum of weights and the last member's time."""
    first = rows.take(pa.array(starts))
    time = reduced(LAST, rows.column(TIME).combine_chunks(), starts, ends)
    weights = reduced(SUM, rows.column(WEIGHT).combine_chunks(), starts, ends)
    return replaced(first, {TIME: time, **values, WEIGHT: weights}), np.ones(len(starts), np.int64)

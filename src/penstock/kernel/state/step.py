"""Connect a step that remembers to the kernel: messages become rows for its algorithm, and its rows messages again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.envelope import (
    ADMISSIONS,
    ADMITTED,
    AT,
    BODY,
    DEAD,
    ENVELOPE,
    ERROR,
    FIRST,
    TRIED,
    TRIES,
    body_column,
)
from penstock.expr.evaluate import expression_key
from penstock.expr.types import type_of
from penstock.formats.arrow import arrow_type
from penstock.formats.jsonnested import write_bodies
from penstock.kernel.block import Block, FirstForm, Numbers
from penstock.kernel.content import fitted
from penstock.kernel.outcome import NEXT, Died, Moved, Outcome
from penstock.kernel.state.aggregating import Aggregating
from penstock.kernel.state.algorithm import SECOND, Algorithm
from penstock.kernel.state.assembling import assembly_of, buries
from penstock.kernel.state.keys import HIGH, LOW, Keys
from penstock.kernel.state.naming import named
from penstock.kernel.state.receiving import Receiving, oldest_batch
from penstock.kernel.state.resequencing import Resequencing
from penstock.kernel.state.rows import COMPLETES, KEY, SEQUENCE, Fates, fold_column, ordered, replaced
from penstock.kernel.table import (
    arrived_from,
    attempts_from,
    columns_of,
    first_forms,
    flat,
    form_type,
    history_of,
    in_message_order,
    in_one_piece,
    parts_from,
    with_one_more,
)
from penstock.patterns.aggregate import REOPEN, Aggregate
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.resequence import Resequence
from penstock.patterns.strategy import Fold
from penstock.plan.plan import Plan, Scope, Stage
from penstock.plan.waiting import counts_tries, undecided
from penstock.schema import Struct

_KEYS = (pa.field(HIGH, pa.int64()), pa.field(LOW, pa.int64()))
_HISTORY = (TRIED, ADMITTED, FIRST)
HERE, FILTERED, DUPLICATE, UNDECIDED = 0, -2, -3, -4
"""What becomes of a row at a step that remembers: it goes on, is filtered, is a duplicate, or waits; or it is DEAD."""


@dataclass(frozen=True)
class StateStep:
    """One step that remembers, with its algorithm; pickled to the workers.

    `arriving` is the schema of the rows that come to it, `carried` are the fields of bodies in them. `start` is the
    scope at the start of its route, and `number` is the number of the step among all steps of the app.
    """

    stage: Stage
    algorithm: Algorithm
    arriving: pa.Schema
    carried: Struct
    start: Scope
    number: int

    @property
    def title(self) -> str:
        return self.stage.title

    def rows(self, block: Block, time: datetime) -> pa.Table:
        """The messages of a block as rows, with everything that this step and the steps after it need of them."""
        keyed = block.keyed
        assert keyed is not None
        asked, bodies = {field.name for field in keyed.type}, body_column(self.stage.scope.number)
        others = {*asked, bodies, *_HISTORY}
        columns = columns_of(block, [name for name in self.arriving.names if name not in others], time)
        columns |= history_of(block, self.arriving, self.stage.route, time)
        columns |= {name: keyed.field(name) for name in asked}
        if bodies in self.arriving.names:
            columns[bodies] = fitted(block.fields, self.carried)
        return pa.table([columns[field.name].cast(field.type) for field in self.arriving], schema=self.arriving)

    def ready(self, rows: pa.Table) -> pa.Table:
        """Sort rows by key, and those of one key in the order of messages, as the algorithm needs them."""
        order = in_message_order(rows)
        sorted_rows = ordered(rows, order[Keys.of(rows)[order].order()])
        return sorted_rows.append_column(AT, pa.array(np.full(len(rows), HERE, np.int32)))

    def outcome(self, tables: Sequence[pa.Table], batch: int) -> Outcome:
        """Make messages of the rows that the algorithm gives in a batch, and say what becomes of each."""
        given = [table for table in tables if len(table)]
        if not given:
            return Outcome()
        rows = in_one_piece(given)
        return self._placed(rows, in_message_order(rows), batch)

    def _placed(self, rows: pa.Table, order: Numbers, batch: int) -> Outcome:
        """Rows stay where they are; only positions of messages are put in order."""
        node, count, places = self.stage.node, len(rows), rows.column(AT).to_numpy()
        is_made = places == HERE if isinstance(node, Aggregate) else np.zeros(count, bool)
        written = None
        if is_made.any():
            rows, bodies = self._made(rows, is_made)
            written = self.stage.after.number
        else:
            bodies = flat(rows, BODY)
        arrived, parts = arrived_from(rows, bodies, written), parts_from(rows)
        if is_made.any():
            rows = without_history(rows, is_made)
            arrived = replace(arrived, tried=flat(rows, TRIED) if TRIED in rows.column_names else None)
        attempt, first = attempts_from(rows, self.stage.route), first_forms(rows, arrived, self.start)
        admitted = flat(rows, ADMITTED) if ADMITTED in rows.column_names else None

        def at(place: int) -> Numbers:
            found: Numbers = order[places[order] == place]
            return found

        def some(numbers: Numbers, scope: Scope) -> Block:
            table = flat(rows, body_column(scope.number)) if body_column(scope.number) in rows.column_names else (
                pa.array([{}] * count, pa.struct([])))  # fmt: skip
            return Block(
                arrived, numbers, scope, table, numbers, parts.take(numbers),
                attempt=None if attempt is None else attempt[numbers],
                admitted=None if admitted is None else admitted.take(pa.array(numbers)),
                first=None if first is None else FirstForm(first.block, first.rows[numbers]),
            )  # fmt: skip

        outcome = Outcome(filtered=at(FILTERED))
        for place, to in ((HERE, NEXT), (DUPLICATE, getattr(node, "duplicates", None))):
            chosen = at(place)
            if len(chosen):
                block = some(chosen, self.stage.after)
                if place == HERE and isinstance(node, Idempotent) and admitted is not None:
                    block = replace(block, admitted=self._admitted(block, rows, batch))
                outcome.moved.append(Moved(to, block, chosen))
        undecided, dead = at(UNDECIDED), at(DEAD)
        if len(undecided):
            outcome.undecided = some(undecided, self.stage.scope)
        if len(dead):
            errors = flat(rows, ERROR).take(pa.array(dead))
            said = [errors.field(name).to_pylist() for name in ("error", "reason")]
            outcome.died.append(Died(some(dead, self.stage.scope), dead, *said))
        return outcome

    def _admitted(self, block: Block, rows: pa.Table, batch: int) -> pa.Array:
        """The keys under which receivers let the messages pass, with the key of this receiver as the last."""
        keys = [flat(rows, name).take(pa.array(block.origin)) for name in (HIGH, LOW)]
        step, number = pa.array(np.full(len(block), self.number, np.int32)), pa.array(np.full(len(block), batch))
        added = pa.StructArray.from_arrays([step, *keys, number], fields=list(ADMISSIONS.value_type))
        return with_one_more(block.known_admissions, added)

    def _made(self, rows: pa.Table, is_made: Numbers) -> tuple[pa.Table, pa.Array]:
        """Give new messages their own ids and headers, and JSON as their bytes."""
        rows = named(rows, is_made, bool(self.stage.node.by))  # type: ignore[attr-defined]
        after = self.stage.after
        bodies = write_bodies(fitted(flat(rows, body_column(after.number)), after.wanted), after.wanted)
        if not is_made.all():
            raw = flat(rows, BODY) if BODY in rows.column_names else pa.nulls(len(rows), pa.binary())
            bodies = pc.if_else(pa.array(is_made), bodies.cast(pa.binary()), raw)
        return rows, bodies.cast(pa.binary())


def state_steps(plan: Plan, on_stop: str, ages: Mapping[str, Mapping[int, int]] | None = None) -> list[StateStep]:
    """The steps that remember, in the order in which messages meet them.

    `on_stop` is for steps that do not set it; `ages` counts, for each step, the keys that each batch brought.
    """
    known = ages or {}
    return [_step(plan, number, stage, on_stop, known.get(stage.title, {}))
            for number, stage in enumerate(plan.stages()) if stage.node.stateful]  # fmt: skip


def without_history(rows: pa.Table, chosen: Numbers) -> pa.Table:
    """Clear the history (tries, receivers, first form) of the chosen rows, because they are new messages."""
    for name in _HISTORY:
        if name in rows.column_names:
            column = flat(rows, name)
            rows = replaced(rows, {name: pc.if_else(pa.array(chosen), pa.scalar(None, column.type), column)})
    return rows


def _history(plan: Plan, start: Scope, restarts: bool) -> list[pa.Field]:
    """The columns of history (tries, receivers, first form) that the app needs for its messages."""
    return [
        *([pa.field(TRIED, TRIES)] if counts_tries(plan) else []),
        *([pa.field(ADMITTED, ADMISSIONS)] if undecided(plan) else []),
        *([pa.field(FIRST, form_type(start))] if restarts else []),
    ]


def _step(plan: Plan, number: int, stage: Stage, on_stop: str, ages: Mapping[int, int]) -> StateStep:
    carried, route = _carried(plan, stage.scope), plan.route(stage.route)
    fields = pa.field(body_column(stage.scope.number), arrow_type(carried))
    fates, history = Fates(stage.route, stage.node.name, HERE, FILTERED), _history(plan, route.scope, route.restarts)
    envelope = [*ENVELOPE, *history]
    match stage.node:
        case Idempotent() as node:
            duplicates = DUPLICATE if node.duplicates else FILTERED
            second = UNDECIDED if stage.title in undecided(plan) else duplicates
            keep = None if node.keep is None else round(node.keep * SECOND)
            receiving = Receiving(keep, oldest_batch(ages, node.keep_last), duplicates, second)
            tried = [] if counts_tries(plan) else [pa.field(TRIED, TRIES)]  # of letters that are replayed
            arriving = pa.schema([*_KEYS, *envelope, *tried, fields])
            return StateStep(stage, receiving, arriving, carried, route.scope, number)
        case Resequence() as node:
            waiting = pa.schema([*envelope, fields])
            resequencing = Resequencing(
                node.size, node.window, node.first, node.timeout, node.late, node.duplicate, node.on_timeout,
                node.on_stop or on_stop, fates, waiting, node.keep,
            )  # fmt: skip
            arriving = pa.schema([*_KEYS, (SEQUENCE, pa.int64()), *waiting])
            return StateStep(stage, resequencing, arriving, carried, route.scope, number)
    algorithm, arriving = _aggregator(stage, on_stop, fates, history)
    return StateStep(stage, algorithm, arriving, stage.scope.wanted, route.scope, number)


def _aggregator(stage: Stage, on_stop: str, fates: Fates, history: list[pa.Field]) -> tuple[Aggregating, pa.Schema]:
    node = stage.node
    assert isinstance(node, Aggregate)
    scopes = stage.scope, stage.after
    value, after = (pa.field(body_column(scope.number), arrow_type(scope.wanted)) for scope in scopes)
    assembly = assembly_of(node, stage, value, after)
    with_body = buries(assembly) or node.closed != REOPEN
    carried = pa.schema([field for field in ENVELOPE if field.name != BODY or with_body])
    if with_body:  # members may come out again, one by one
        carried = pa.schema([*carried, *history])
    algorithm = Aggregating(
        node.size, node.timeout, node.interval, node.when is not None, node.batch_end, node.new_group,
        node.on_timeout, node.on_stop or on_stop, node.closed, node.closed_for, assembly, fates, carried,
    )  # fmt: skip
    columns = [*_KEYS, pa.field(KEY, pa.string())]
    if node.when is not None:
        columns.append(pa.field(COMPLETES, pa.bool_()))
    if isinstance(node.strategy, Fold):
        columns += [pa.field(fold_column(number), arrow_type(type_of(part, stage.scope.schema)))
                    for number, (_, _, part) in enumerate(node.strategy.folds) if part is not None]  # fmt: skip
    columns += [*carried, *([value] if value.name in assembly.state.names else [])]
    return algorithm, pa.schema(columns)


def _carried(plan: Plan, scope: Scope) -> Struct:
    """The fields of a scope that are read, and the values of XPath and JSONPath that its decoder has found."""
    paths = [path for entry in plan.entries if entry.scope.number == scope.number for path in entry.paths]
    return Struct((*scope.wanted.fields, *((expression_key(path), type_of(path, scope.schema)) for path in paths)))

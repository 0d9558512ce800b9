"""The waiting room: messages that go on in a later batch as tables, and tables back as messages.

An original body is decoded again from its bytes; of a rewritten one the fields are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from penstock.envelope import BODY, ENVELOPE, FIRST, TRIED, TRIES
from penstock.formats.arrow import arrow_type
from penstock.kernel.block import Block, Numbers
from penstock.kernel.content import fitted
from penstock.kernel.flow import Waiting
from penstock.kernel.reading import Decoder, Failures
from penstock.kernel.table import (
    FIELDS,
    arrived_from,
    attempts_from,
    columns_of,
    first_forms,
    flat,
    form_type,
    history_of,
    parts_from,
)
from penstock.plan.plan import Plan

DUE = "due"
_STEP = b"step"


@dataclass(frozen=True)
class Released:
    """Messages that leave the waiting room for a step; `failures` has, by position, those that cannot be decoded."""

    title: str
    route: str
    block: Block
    failures: Failures


class WaitingRoom:
    """Turns messages that begin to wait into rows, and rows back into messages; pickled to the workers."""

    def __init__(self, plan: Plan) -> None:
        self.titles = [stage.title for stage in plan.stages()]
        self.places = {stage.title: (stage.route, stage.scope) for stage in plan.stages()}
        self.starts = {stage.title: route.scope for route in plan.routes for stage in route.stages if route.restarts}
        self.decoders = {scope.number: Decoder(plan.reader(stage.route, scope))
                         for stage in plan.stages() if (scope := stage.scope).raw}  # fmt: skip

    def rows(self, waiting: Waiting, now: int, time: datetime) -> pa.Table:
        """Messages that begin to wait, as rows with the time they are due. `time` is for messages that have none."""
        title, block = waiting.title, waiting.block
        schema, (route, _) = self._schema(title), self.places[title]
        columns = columns_of(block, ENVELOPE.names, time) | history_of(block, schema, route, time)
        if FIELDS in schema.names:
            columns[FIELDS] = fitted(block.fields, block.scope.wanted)
        columns[DUE] = pa.array(now + waiting.after)
        return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)

    def released(self, rows: pa.Table) -> Released:
        """The messages of these rows, which all wait for the same step."""
        title = rows.schema.metadata[_STEP].decode()
        arrived, (route, scope) = arrived_from(rows, flat(rows, BODY)), self.places[title]
        every, failures, start = np.arange(len(rows)), Failures(), self.starts.get(title)
        if scope.raw:
            good, failures = self.decoders[scope.number](arrived)
            table, readable = good.table, good.origin
        else:
            table, readable = flat(rows, FIELDS), every
        first = None if start is None else first_forms(rows, arrived, start)
        block = Block(arrived, every, scope, table, every, parts_from(rows),
                      attempt=attempts_from(rows, route), first=first)  # fmt: skip
        return Released(title, route, block.take(readable), failures)

    def _schema(self, title: str) -> pa.Schema:
        _, scope = self.places[title]
        fields = [*ENVELOPE, pa.field(TRIED, TRIES), pa.field(DUE, pa.int64())]
        if title in self.starts:
            fields.append(pa.field(FIRST, form_type(self.starts[title])))
        if not scope.raw:
            fields.append(pa.field(FIELDS, arrow_type(scope.wanted)))
        return pa.schema(fields, metadata={_STEP: title.encode()})


def due_between(rows: pa.Table, since: int, now: int) -> Numbers:
    """The positions of rows that became due after `since`, up to `now`."""
    due = flat(rows, DUE).to_numpy()
    found: Numbers = np.flatnonzero((due > since) & (due <= now))
    return found


def admissions(blocks: Iterable[Block], titles: Sequence[str], batch: int) -> Iterator[tuple[str, int, int]]:
    """The keys under which receivers let these messages pass in this batch, each as step and both halves of the key."""
    for block in blocks:
        for one in () if block.admitted is None else block.admitted.flatten().to_pylist():
            if one["batch"] == batch:
                yield titles[one["step"]], one["high"], one["low"]

"""Steps that may make several messages of one: splitters and scripts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.expr.columnwise import elements_of
from penstock.failures import SCRIPT_FAILED, said
from penstock.formats.arrow import arrow_type
from penstock.kernel.asked import Answers
from penstock.kernel.block import MOST_BYTES, Block, Numbers
from penstock.kernel.content import fitted, shaped, struct_of
from penstock.kernel.outcome import NEXT, Moved, Outcome
from penstock.kernel.plain import to_arrow
from penstock.kernel.work import Works
from penstock.patterns.script import Script, scripted_rows
from penstock.patterns.split import VALUE, Split, SplitFields
from penstock.plan.plan import Stage


def split(node: Split, block: Block, asked: Answers) -> Outcome:
    """A message for every element of the collection."""
    stage = asked.stage
    rows, elements = elements_of(asked.value(node.collection))
    wanted = stage.after.wanted

    def made(part: slice) -> pa.StructArray:
        some, parents = elements[part], pa.array(rows[part])
        if node.into is None and pa.types.is_struct(some.type):
            return fitted(_never_null(some), wanted)
        columns = [some if name in (VALUE, node.into) else block.column(name).take(parents) for name in wanted.names]
        shapes = (shaped(column, kind) for column, (_, kind) in zip(columns, wanted.fields, strict=True))
        return struct_of(wanted, list(shapes), len(some))

    return parted(stage, block, rows, made)


def _never_null(elements: pa.StructArray) -> pa.StructArray:
    """The elements; a null element becomes an object without fields."""
    if not elements.null_count:
        return elements
    columns = elements.flatten()
    if not columns:
        return pa.array([{}] * len(elements), elements.type)
    return pa.StructArray.from_arrays(columns, fields=list(elements.type))


def split_fields(node: SplitFields, block: Block, asked: Answers) -> Outcome:
    """A message for every field that is present, with the fields of head and tail around it."""
    stage = asked.stage
    names = node.iterable(stage.scope.schema)
    there = np.stack([block.column(name).is_valid().to_numpy(zero_copy_only=False) for name in names], 1)
    rows, which = np.nonzero(there)

    def made(part: slice) -> pa.StructArray:
        columns = []
        for name, kind in stage.after.wanted.fields:
            other = which[part] != names.index(name) if name in names else None
            columns.append(shaped(block.column(name), kind).take(pa.array(rows[part], mask=other)))
        return struct_of(stage.after.wanted, columns, len(rows[part]))

    return parted(stage, block, rows, made)


def parted(
    stage: Stage, block: Block, rows: Numbers, made: Callable[[slice], pa.StructArray], fewest: int = 1
) -> Outcome:
    """A new message for each position in `rows`, which rise; a message without any is filtered.

    `made` gives the bodies, a slice at a time. A message with fewer than `fewest` new ones is not split: it keeps its
    identity.
    """
    counts = np.bincount(rows, minlength=len(block))
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    index = np.where(counts[rows] >= fewest, number, -1)
    outcome = Outcome(filtered=np.flatnonzero(counts == 0))
    for part in _bounded(block.arrived.sizes[block.origin[rows]]):
        parts = block.split(rows[part], index[part], counts[rows[part]])
        outcome.moved.append(Moved(NEXT, parts.with_table(stage.after, made(part)), rows[part], number[part]))
    return outcome


def _bounded(sizes: Numbers) -> Iterator[slice]:
    """Slices of neighbouring messages, each of about MOST_BYTES."""
    ends = np.flatnonzero(np.diff(np.cumsum(sizes) // MOST_BYTES)) + 1
    for start, end in itertools.pairwise([0, *ends.tolist(), len(sizes)]):
        if end > start:
            yield slice(start, end)


def script(node: Script, block: Block, asked: Answers) -> Outcome:
    """The user's function over all bodies at once; if it fails, over each half of them, down to one."""
    outcome, stage = Outcome(), asked.stage
    table = pa.Table.from_arrays(fitted(block.fields, stage.scope.schema).flatten(),
                                 schema=pa.schema(list(arrow_type(stage.scope.schema))))  # fmt: skip
    made, failed = _scripted(node, table)
    dead = np.array(sorted(failed), np.int64)
    outcome.bury(block, dead, SCRIPT_FAILED, [failed[row] for row in dead.tolist()])
    alive = np.setdiff1d(np.arange(len(block)), dead)
    made.sort(key=lambda one: one[0])
    place = np.full(len(block), -1)
    place[alive] = np.arange(len(alive))
    bodies = fitted(to_arrow([body for _, body in made], node.returns), stage.after.wanted)
    rows = place[np.array([row for row, _ in made], np.int64)]
    parts = parted(stage, block.take(alive), rows, lambda part: bodies[part], fewest=2)
    outcome.filtered = alive[parts.filtered]
    outcome.moved = [Moved(one.to, one.block, alive[one.rows], one.number) for one in parts.moved]
    return outcome


def _scripted(node: Script, table: pa.Table) -> tuple[list[tuple[int, dict[str, Any]]], dict[int, str]]:
    """The bodies that the function made, each with the row it came from, and why it failed for the other rows."""
    try:
        return scripted_rows(node, node.function(table), len(table)), {}
    except Exception as problem:
        if len(table) == 1:
            return [], {0: said(problem)}
    half = len(table) // 2
    made, failed = _scripted(node, table.slice(0, half))
    later, reasons = _scripted(node, table.slice(half))
    made += [(half + row, body) for row, body in later]
    return made, failed | {half + row: why for row, why in reasons.items()}


STEPS: Works = {Split: split, SplitFields: split_fields, Script: script}

"""Steps that rewrite bodies or headers: message translator, content filter, content enricher, header enricher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.endpoints.searchable import piece
from penstock.failures import NOT_IN_TABLE
from penstock.formats.arrow import arrow_type
from penstock.formats.jsonobjects import scalar_texts
from penstock.kernel.asked import Answers
from penstock.kernel.block import Block
from penstock.kernel.headers import with_headers
from penstock.kernel.outcome import NEXT, Moved, Outcome
from penstock.kernel.work import Works
from penstock.patterns.content_filter import ContentFilter
from penstock.patterns.enrich import Enrich, EnrichFromTable
from penstock.patterns.headers import Headers
from penstock.patterns.node import DEAD
from penstock.patterns.translate import Translate
from penstock.plan.plan import Stage
from penstock.schema import Struct, Type, inside
from penstock.values import text_of
from penstock.valuetexts import value_texts

Values = Sequence[tuple[tuple[str, ...], pa.Array]]


def rewrite(node: Translate | Enrich, block: Block, asked: Answers) -> Outcome:
    """Translator and enricher: put each value that is read later into its field; an enricher keeps the other fields."""
    wanted = asked.stage.after.wanted
    used = [(target, value) for target, value in node.mappings if inside(wanted, target) is not None]
    values = [(target, asked.value(value)) for target, value in used]
    targets = [target for target, _ in node.mappings]
    kept = block.fields if isinstance(node, Enrich) else None
    return _made(asked.stage, block, built(wanted, values, targets, kept, len(block)))


def narrow(node: ContentFilter, block: Block, asked: Answers) -> Outcome:
    return _made(asked.stage, block, fitted(block.fields, asked.stage.after.wanted))


def look_up(node: EnrichFromTable, block: Block, asked: Answers) -> Outcome:
    outcome, stage = Outcome(), asked.stage
    keys = asked.value(node.on)
    place = node.table.searchable.find(keys)
    found = place.is_valid().to_numpy(zero_copy_only=False)
    if node.missing == DEAD and not found.all():
        rows = np.flatnonzero(~found)
        shown = ["nothing" if key is None else text_of(key) for key in keys.take(pa.array(rows)).to_pylist()]
        outcome.bury(block, rows, NOT_IN_TABLE, [f"{node.table} has no row for {key}" for key in shown])
        there = np.flatnonzero(found)
        if not len(there):
            return outcome
        block, place = block.take(there), place.take(pa.array(there))
    else:
        there = np.arange(len(block))
    looked_up = _used(node, stage.after.wanted)
    columns = [piece(node.table.table[name]).take(place).cast(arrow_type(kind)) for name, kind in looked_up.fields]
    if node.into:
        values = [((node.into,), struct_of(looked_up, columns, len(block), mask=place.is_null()))]
    else:
        values = [((name,), column) for name, column in zip(looked_up.names, columns, strict=True)]
    made = built(stage.after.wanted, values, [target for target, _ in values], block.fields, len(block))
    outcome.moved.append(Moved(NEXT, block.with_table(stage.after, made), there))
    return outcome


def _used(node: EnrichFromTable, wanted: Struct) -> Struct:
    """The columns of the lookup table that the step adds and that somebody reads."""
    known = wanted.get(node.into) if node.into else wanted
    names = known.names if isinstance(known, Struct) else ()
    return Struct(tuple((name, kind) for name, kind in node.looked_up().fields if name in names))


def set_headers(node: Headers, block: Block, asked: Answers) -> Outcome:
    values = {name: _header_texts(asked.value(value)) for name, value in node.values}
    return Outcome([Moved(NEXT, with_headers(block, values, node.removed), np.arange(len(block)))])


def _header_texts(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        return values
    return scalar_texts(values) if pa.types.is_floating(values.type) else value_texts(values)


def _made(stage: Stage, block: Block, table: pa.StructArray) -> Outcome:
    return Outcome([Moved(NEXT, block.with_table(stage.after, table), np.arange(len(block)))])


def built(
    wanted: Struct, values: Values, targets: Sequence[tuple[str, ...]], kept: pa.StructArray | None, length: int
) -> pa.StructArray:
    """A struct of these values, and beside them the wanted fields of `kept`; no row of it is null."""
    columns = [_field(name, kind, values, targets, kept, length) for name, kind in wanted.fields]
    return struct_of(wanted, columns, length)


def _field(
    name: str, kind: Type, values: Values, targets: Sequence[tuple[str, ...]], kept: pa.StructArray | None, length: int
) -> pa.Array:
    for target, value in values:
        if target == (name,):
            return shaped(value, kind)
    inner = None if kept is None or kept.type.get_field_index(name) < 0 else pc.struct_field(kept, [name])
    if not any(target[0] == name for target in targets):
        return pa.nulls(length, arrow_type(kind)) if inner is None else shaped(inner, kind)
    assert isinstance(kind, Struct)
    below = [(target[1:], value) for target, value in values if target[0] == name]
    return built(kind, below, [target[1:] for target in targets if target[0] == name], inner, length)


def struct_of(kind: Struct, columns: Sequence[pa.Array], length: int, mask: pa.Array | None = None) -> pa.StructArray:
    if not columns:
        return pa.array([{}] * length, pa.struct([]))
    return pa.StructArray.from_arrays(list(columns), fields=list(arrow_type(kind)), mask=mask)


def fitted(bodies: pa.StructArray, wanted: Struct) -> pa.StructArray:
    """The bodies with exactly the wanted fields; a field that they lack is null, and a null body stays null."""
    if bodies.type == arrow_type(wanted):
        return bodies
    columns = [
        pa.nulls(len(bodies), arrow_type(kind)) if bodies.type.get_field_index(name) < 0
        else shaped(pc.struct_field(bodies, [name]), kind)
        for name, kind in wanted.fields
    ]  # fmt: skip
    return struct_of(wanted, columns, len(bodies), bodies.is_null() if bodies.null_count else None)


def shaped(values: pa.Array, wanted: Type) -> pa.Array:
    """A column in the wanted type; a struct keeps only the fields that are read."""
    kind = arrow_type(wanted)
    if values.type == kind:
        return values
    if isinstance(wanted, Struct) and pa.types.is_struct(values.type):
        return fitted(values, wanted)
    return values.cast(kind, safe=False)


STEPS: Works = {
    Translate: rewrite,
    Enrich: rewrite,
    ContentFilter: narrow,
    EnrichFromTable: look_up,
    Headers: set_headers,
}

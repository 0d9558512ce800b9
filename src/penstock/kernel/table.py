"""Messages as rows that need nothing else: how they travel through Spark's shuffle, and how they wait in files.

A block refers to the messages that arrived with it. A row has all of a message: the envelope, the original bytes, and
the fields of the body.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.endpoints.searchable import piece
from penstock.envelope import (
    ADMITTED,
    ATTACHMENTS,
    ATTEMPT,
    COUNT,
    ENVELOPE,
    FIRST,
    HEADERS,
    ID,
    INDEX,
    OFFSET,
    ORDER,
    ORDERS,
    PARENT,
    PARTITION,
    PATH,
    SCOPE,
    TIME,
    TOPIC,
    TRIED,
    TRIES,
)
from penstock.formats.arrow import arrow_type
from penstock.kernel.block import Arrived, Block, FirstForm, Numbers, Parts
from penstock.kernel.bodies import raw
from penstock.kernel.content import fitted
from penstock.plan.plan import Scope

_FORM = (ID, HEADERS, PARENT, INDEX, COUNT, SCOPE, ORDER)
FIELDS = "fields"
"""The column with the fields of a rewritten body."""


def columns_of(block: Block, wanted: Collection[str], time: datetime) -> dict[str, pa.Array]:
    """These columns of the envelope, for a block. `time` is for messages whose source gives none."""
    found = {}
    for name in wanted:
        kind = pa.int32() if name == ATTEMPT else ENVELOPE.field(name).type
        found[name] = _column(block, name, time, kind)
    return found


def history_of(block: Block, wanted: pa.Schema, route: str, time: datetime) -> dict[str, pa.Array]:
    """What happened to messages so far: their tries, the receivers they passed, and how they came to their route."""
    found: dict[str, pa.Array] = {}
    if TRIED in wanted.names:
        found[TRIED] = _tries(block, route)
    if ADMITTED in wanted.names:
        found[ADMITTED] = block.known_admissions
    if FIRST in wanted.names:  # a letter that is replayed at its step never came to the start
        kind = wanted.field(FIRST).type
        found[FIRST] = pa.nulls(len(block), kind) if block.first is None else _forms(block.first, time)
    return found


def form_type(scope: Scope) -> pa.StructType:
    """The type of messages as they came to the start of a route; an original body needs no fields beside its bytes."""
    fields = [] if scope.raw else [pa.field(FIELDS, arrow_type(scope.wanted))]
    return pa.struct([*(ENVELOPE.field(name) for name in _FORM), *fields])


def _tries(block: Block, route: str) -> pa.StructArray:
    before = pa.nulls(len(block), TRIES) if block.arrived.tried is None else block.arrived.tried.take(
        pa.array(block.origin))  # fmt: skip
    if block.attempt is None:
        return before
    routes, counts = pa.repeat(pa.scalar(route), len(block)), pa.array(block.attempt, pa.int32())
    here = pa.StructArray.from_arrays([routes, counts], fields=list(TRIES))
    return pc.if_else(pa.array(block.attempt > 1), here, before)


def _forms(first: FirstForm, time: datetime) -> pa.StructArray:
    form, rows = first.block, first.rows
    known = columns_of(form, _FORM, time)
    if not form.scope.raw:
        known[FIELDS] = fitted(form.fields, form.scope.wanted)
    kind = form_type(form.scope)
    every = pa.StructArray.from_arrays([known[field.name].cast(field.type) for field in kind], fields=list(kind))
    return every.take(pa.array(rows, mask=rows < 0))


def _column(block: Block, name: str, time: datetime, kind: pa.DataType) -> pa.Array:
    arrived, length, rows = block.arrived, len(block), pa.array(block.origin)
    match name:
        case "id":
            return block.ids
        case "parent":
            return block.parents
        case "headers":
            return block.known_headers.cast(kind)
        case "attachments":
            return pa.nulls(length, kind) if arrived.attachments is None else arrived.attachments.take(rows)
        case "topic":
            return arrived.topics(block.origin)
        case "partition":
            return pa.array(arrived.partitions(block.origin), kind)
        case "offset":
            return pa.array(arrived.offsets[block.origin])
        case "time":
            return pa.repeat(pa.scalar(time, kind), length) if arrived.times is None else arrived.times.take(rows).cast(
                kind)  # fmt: skip
        case "scope":
            return pa.array(np.full(length, block.scope.number), kind)
        case "body":
            return raw(block).cast(kind)
        case "attempt":
            return pa.array(block.tries, kind)
        case "order":
            return _orders(block)
    numbers = None if block.parts is None else block.parts.index if name == INDEX else block.parts.count
    return pa.nulls(length, kind) if numbers is None else pa.array(numbers, kind, mask=numbers < 0)


def _orders(block: Block) -> pa.StructArray:
    arrived, rows = block.arrived, block.origin
    if arrived.order is not None:
        before = arrived.order.take(pa.array(rows))
        parts = {name: before.field(name) for name in ORDERS.names}
        if block.order:
            parts["path"] = _paths([*_levels(parts["path"]), *block.order], len(rows))
        return pa.StructArray.from_arrays(list(parts.values()), fields=list(ORDERS))
    source, partition = (pa.array(numbers, pa.int32()) for numbers in (
        np.full(len(rows), arrived.source), arrived.partitions(rows)))  # fmt: skip
    columns = [source, arrived.topics(rows), partition, pa.array(arrived.offsets[rows], pa.int64()),
               _paths(block.order, len(rows))]  # fmt: skip
    return pa.StructArray.from_arrays(columns, fields=list(ORDERS))


def _paths(levels: Sequence[Numbers], length: int) -> pa.ListArray:
    """The numbers of all levels as one list per message, without those that are -1."""
    ends = np.zeros(length + 1, np.int32)
    if not levels:
        return pa.ListArray.from_arrays(pa.array(ends), pa.array([], pa.int32()), type=PATH)
    numbers = np.stack(levels, axis=1)
    there = numbers >= 0
    np.cumsum(there.sum(axis=1), out=ends[1:])
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(numbers[there], pa.int32()), type=PATH)


def _levels(paths: pa.ListArray) -> tuple[Numbers, ...]:
    """The reverse of `_paths`: as many levels as the longest list has numbers."""
    lengths = paths.value_lengths().to_numpy(zero_copy_only=False)
    depth = int(lengths.max()) if len(lengths) else 0
    numbers = np.full((len(paths), depth), -1)
    numbers[np.arange(depth) < lengths[:, None]] = paths.flatten().to_numpy()
    return tuple(numbers.T)


def arrived_from(rows: pa.Table, bodies: pa.Array, written: int | None = None) -> Arrived:
    """Rows as arrived messages with these bodies."""
    return Arrived(
        bodies, flat(rows, TOPIC), flat(rows, PARTITION).to_numpy(), flat(rows, OFFSET).to_numpy(), flat(rows, TIME),
        flat(rows, HEADERS), flat(rows, ATTACHMENTS), flat(rows, ID), order=flat(rows, ORDER),
        parents=flat(rows, PARENT), written=written, tried=flat(rows, TRIED) if TRIED in rows.column_names else None,
    )  # fmt: skip


def first_forms(rows: pa.Table, arrived: Arrived, scope: Scope) -> FirstForm | None:
    """The reverse of `_forms`. Original bodies are not decoded here, but when a message is tried again."""
    if FIRST not in rows.column_names:
        return None
    forms = flat(rows, FIRST)
    there = forms.is_valid().to_numpy(zero_copy_only=False)
    if not there.any():
        return None
    known = {name: forms.field(name) for name in _FORM}
    came = replace(arrived, ids=known[ID], headers=known[HEADERS], parents=known[PARENT], order=known[ORDER])
    table = pa.array([{}] * len(rows), pa.struct([])) if scope.raw else forms.field(FIELDS)
    number = np.arange(len(rows))
    index, count = (known[name].fill_null(-1).to_numpy() for name in (INDEX, COUNT))
    return FirstForm(Block(came, number, scope, table, number, Parts((), index, count)), np.where(there, number, -1))


def attempts_from(rows: pa.Table, route: str) -> Numbers | None:
    """The number of the try, in this route, that each message is at."""
    if TRIED not in rows.column_names:
        return None
    tries = flat(rows, TRIED)
    here = pc.and_(tries.is_valid(), pc.equal(tries.field("route"), route)).fill_null(False)
    found: Numbers = pc.if_else(here, tries.field("count"), 1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def parts_from(rows: pa.Table) -> Parts:
    index, count = (flat(rows, name).fill_null(-1).to_numpy() for name in (INDEX, COUNT))
    return Parts((), index, count)


def in_message_order(rows: pa.Table) -> Numbers:
    """The positions that sort rows by the place of their messages in the batch."""
    order = flat(rows, ORDER)
    levels = (*positions(order), *_levels(order.field("path")))
    differing = [level for level in levels if len(level) and (level != level[0]).any()]
    if not differing or (len(differing) == 1 and (differing[0][1:] >= differing[0][:-1]).all()):
        return np.arange(len(rows))
    found: Numbers = np.lexsort(differing[::-1])
    return found


def positions(order: pa.StructArray) -> tuple[Numbers, ...]:
    """The place of each message in its source, without its path, as columns to sort by; the first counts most."""
    source, partition, offset = (order.field(name).to_numpy() for name in ("source", PARTITION, OFFSET))
    return source, _ranks(order.field(TOPIC)), partition, offset


def with_one_more(lists: pa.ListArray, added: pa.Array) -> pa.ListArray:
    """Every path with one more number at its end."""
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    values, ends = pa.concat_arrays([lists.flatten(), added]), np.cumsum(lengths + 1)
    is_last = np.zeros(len(values), bool)
    is_last[ends - 1] = True
    order = np.empty(len(values), np.int64)
    order[~is_last], order[is_last] = np.arange(lengths.sum()), np.arange(lengths.sum(), len(values))
    offsets = pa.array(np.append(0, ends).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(order)), type=lists.type)


def _ranks(texts: pa.Array) -> Numbers:
    """The rank of each text among the distinct texts."""
    encoded = texts.dictionary_encode()
    if len(encoded.dictionary) == 1:
        return np.zeros(len(texts), np.int64)
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[np.argsort(np.array(encoded.dictionary.to_pylist(), object))] = np.arange(len(ranks))
    found: Numbers = ranks[encoded.indices.to_numpy()]
    return found


def in_one_piece(tables: Sequence[pa.Table]) -> pa.Table:
    """One table without chunks, because taking rows out of many chunks is slow; columns that a table lacks are null."""
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def flat(rows: pa.Table, name: str) -> pa.Array:
    return piece(rows.column(name))

"""A block: messages that are at the same step, as Arrow columns.

The messages that a source gave stay as they are (`Arrived`). A block has positions only: which of these messages it
holds, and which row of a table of bodies each of them has now. So a step that routes messages chooses positions, and
only a step that makes new bodies makes a new table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.envelope import ADMISSIONS
from penstock.message import Message
from penstock.plan.plan import Scope

Numbers: TypeAlias = npt.NDArray[Any]
MOST_BYTES = 256 << 20
"""The most bytes of messages that are handled at once; Arrow's columns of text end at eight times that."""
HEADERS, ATTACHMENTS = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.binary())


@dataclass(frozen=True)
class Arrived:
    """Messages as a source gave them: bodies, topic, partition and offsets, and times, headers and ids if it has them.

    Messages that come from a step that remembers, or from the waiting room, are of several sources: their `topic` and
    `partition` are columns, and `order` is the place of each message in the batch. They may be parts of a split
    message, with `parents`. Their bodies may be JSON that the engine has `written` itself, of the scope with that
    number. `fields` has the decoded bodies where the source has columns. `tried` says in which route, and how often, a
    message was tried before.
    """

    bodies: pa.Array
    topic: str | pa.Array
    partition: int | Numbers
    offsets: npt.NDArray[np.int64]
    times: pa.Array | None = None
    headers: pa.Array | None = None
    attachments: pa.Array | None = None
    ids: pa.Array | None = None
    source: int = 0
    order: pa.StructArray | None = None
    parents: pa.Array | None = None
    written: int | None = None
    fields: pa.StructArray | None = None
    tried: pa.StructArray | None = None

    def slice(self, start: int, length: int) -> Arrived:
        def part(column: pa.Array | None) -> pa.Array | None:
            return None if column is None else column.slice(start, length)

        return Arrived(self.bodies.slice(start, length), self.topic, self.partition,
                       self.offsets[start : start + length], part(self.times), part(self.headers),
                       part(self.attachments), part(self.ids), fields=part(self.fields))  # fmt: skip

    @cached_property
    def sizes(self) -> Numbers:
        """The bytes of each body."""
        found: Numbers = pc.fill_null(pc.binary_length(self.bodies), 0).to_numpy()
        return found

    def topics(self, chosen: Numbers) -> pa.Array:
        if isinstance(self.topic, str):
            return pa.repeat(pa.scalar(self.topic), len(chosen))
        return self.topic.take(pa.array(chosen))

    def partitions(self, chosen: Numbers) -> Numbers:
        return np.full(len(chosen), self.partition) if isinstance(self.partition, int) else self.partition[chosen]

    def identities(self, chosen: Numbers) -> pa.Array:
        if self.ids is not None:
            return self.ids.take(pa.array(chosen))
        offsets = pa.array(self.offsets[chosen]).cast(pa.string())
        return pc.binary_join_element_wise(f"{self.topic}/{self.partition}/", offsets, "")

    def attempts(self, route: str, chosen: Numbers) -> Numbers | None:
        """The number of the try that each message begins in this route; None if it is the first for all of them."""
        if self.tried is None:
            return None
        here = pc.fill_null(pc.equal(self.tried.field("route"), route), False).to_numpy(zero_copy_only=False)
        found: Numbers = np.where(here, self.tried.field("count").fill_null(1).to_numpy(), 1)[chosen]
        return found if (found > 1).any() else None


def arrived_of(given: Iterable[Message], topic: str, source: int = 0) -> Arrived:
    listed = list(given)
    headers = pa.array([list(message.headers.items()) for message in listed], HEADERS)
    attachments = pa.array([list(message.attachments.items()) for message in listed], ATTACHMENTS)
    offsets = np.array([message.position.offset for message in listed], np.int64)
    return Arrived(pa.array([message.raw for message in listed], pa.binary()), topic, 0, offsets, headers=headers,
                   attachments=attachments, ids=pa.array([message.id for message in listed], pa.string()),
                   source=source)  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """Which part of a split message each message is: its index at every splitter it passed, -1 where it was not split.

    `index` and `count` are those of the last splitter, -1 for a message that is not a part.
    """

    path: tuple[Numbers, ...]
    index: Numbers
    count: Numbers

    def take(self, rows: Numbers) -> Parts:
        return Parts(tuple(level[rows] for level in self.path), self.index[rows], self.count[rows])


@dataclass(frozen=True)
class FirstForm:
    """Messages as they came to the start of their route, for redelivery that restarts there; -1 where there is none."""

    block: Block
    rows: Numbers


@dataclass(frozen=True)
class Block:
    """Messages at one step, whose bodies all have the same scope.

    `origin` is the position in `arrived` of each message, or of the message that it was made from; `row` is the row of
    the table with its fields. `headers` are set where a step or another try has changed them; `attempt` is the number
    of the try in this route. `order` has, for every step that made several messages of one, the number of the part or
    copy, -1 where it made only one. `members` has, for every step that may stop its parts or copies
    (`plan/stopping.py`), the member that each message comes from. `keyed` has the key of each message at the step that
    remembers, and the values that this step computes. `admitted` lists the keys under which idempotent receivers let
    each message pass, where they forget the keys of messages that fail.
    """

    arrived: Arrived
    origin: Numbers
    scope: Scope
    table: pa.StructArray
    row: Numbers
    parts: Parts | None = None
    headers: pa.Array | None = None
    attempt: Numbers | None = None
    order: tuple[Numbers, ...] = ()
    members: tuple[Numbers, ...] = ()
    keyed: pa.StructArray | None = None
    admitted: pa.Array | None = None
    first: FirstForm | None = None

    def __len__(self) -> int:
        return len(self.origin)

    def take(self, rows: Numbers) -> Block:
        """The messages at these positions; a position may occur several times."""
        if len(rows) == len(self) and bool((rows == np.arange(len(self))).all()):
            return self
        return replace(
            self, origin=self.origin[rows], row=self.row[rows],
            parts=None if self.parts is None else self.parts.take(rows),
            headers=None if self.headers is None else self.headers.take(pa.array(rows)),
            attempt=None if self.attempt is None else self.attempt[rows],
            order=tuple(level[rows] for level in self.order), members=tuple(level[rows] for level in self.members),
            keyed=None if self.keyed is None else self.keyed.take(pa.array(rows)),
            admitted=None if self.admitted is None else self.admitted.take(pa.array(rows)),
            first=None if self.first is None else FirstForm(self.first.block, self.first.rows[rows]),
        )  # fmt: skip

    def where(self, chosen: Numbers) -> Block:
        return self if chosen.all() else self.take(np.flatnonzero(chosen))

    def with_table(self, scope: Scope, table: pa.StructArray) -> Block:
        """The same messages with new bodies, one row for each."""
        return replace(self, scope=scope, table=table, row=np.arange(len(table)))

    @cached_property
    def fields(self) -> pa.StructArray:
        """The bodies, in the order of the messages."""
        return self.table if self._is_whole else self.table.take(pa.array(self.row))

    @property
    def size(self) -> int:
        """About how many bytes the messages have: those of the original bodies, counted for every part and copy."""
        return int(self.arrived.sizes[self.origin].sum())

    def column(self, name: str) -> pa.Array:
        """One field of the bodies, in the order of the messages."""
        found = pc.struct_field(self.table, [name])
        return found if self._is_whole else found.take(pa.array(self.row))

    @cached_property
    def _is_whole(self) -> bool:
        return len(self.row) == len(self.table) and bool((self.row == np.arange(len(self.row))).all())

    @property
    def known_headers(self) -> pa.Array:
        if self.headers is not None:
            return self.headers
        if self.arrived.headers is None:
            return pa.nulls(len(self), HEADERS)
        return self.arrived.headers.take(pa.array(self.origin))

    @property
    def known_admissions(self) -> pa.Array:
        return pa.nulls(len(self), ADMISSIONS) if self.admitted is None else self.admitted

    @property
    def ids(self) -> pa.Array:
        found = self.arrived.identities(self.origin)
        for level in () if self.parts is None else self.parts.path:
            found = _below(found, level)
        return found

    @property
    def parents(self) -> pa.Array:
        """The id of the message that each one is a part of, or null."""
        above, before = self.arrived.parents, self.arrived.identities(self.origin)
        found = pa.nulls(len(self), pa.string()) if above is None else above.take(pa.array(self.origin))
        for level in () if self.parts is None else self.parts.path:
            found = pc.if_else(pa.array(level >= 0), before, found)
            before = _below(before, level)
        return found

    @property
    def tries(self) -> Numbers:
        return np.ones(len(self), np.int64) if self.attempt is None else self.attempt

    def split(self, rows: Numbers, index: Numbers, count: Numbers) -> Block:
        """Parts of the messages at these positions; where the index is -1, the message is no part but stays itself."""
        made, before = self.take(rows), self.parts
        is_part = index >= 0
        known = (np.full(len(rows), -1), np.full(len(rows), -1)) if before is None else (
            made.parts.index, made.parts.count)  # type: ignore[union-attr]  # fmt: skip
        path = () if made.parts is None else made.parts.path
        parts = Parts((*path, index), np.where(is_part, index, known[0]), np.where(is_part, count, known[1]))
        return replace(made, parts=parts)


def _below(ids: pa.Array, level: Numbers) -> pa.Array:
    parts = pc.binary_join_element_wise(ids, pa.array(level).cast(pa.string()), ".")
    return pc.if_else(pa.array(level >= 0), parts, ids)


def together(blocks: Sequence[Block]) -> Block:
    """Join blocks of one scope, made of the same arrived messages, into one block in the order of the source."""
    if len(blocks) == 1:
        return blocks[0]
    joined = _joined(blocks)
    return joined.take(in_order([joined]))


def _joined(blocks: Sequence[Block]) -> Block:
    """Put blocks one behind the other; a table that several blocks share is taken once."""
    first = blocks[0]
    tables: list[pa.StructArray] = []
    rows: list[Numbers] = []
    starts: dict[int, int] = {}
    size = 0
    for block in blocks:
        if id(block.table) not in starts:
            starts[id(block.table)] = size
            tables.append(block.table)
            size += len(block.table)
        rows.append(block.row + starts[id(block.table)])
    return Block(
        first.arrived, np.concatenate([block.origin for block in blocks]), first.scope,
        tables[0] if len(tables) == 1 else pa.concat_arrays(tables), np.concatenate(rows), _parts(blocks),
        None if all(block.headers is None for block in blocks) else pa.concat_arrays(
            [block.known_headers.cast(HEADERS) for block in blocks]),
        None if all(block.attempt is None for block in blocks) else np.concatenate(
            [block.tries for block in blocks]),
        _levels(blocks, [block.order for block in blocks]), _levels(blocks, [block.members for block in blocks]),
        None if first.keyed is None else pa.concat_arrays([block.keyed for block in blocks]),
        None if all(block.admitted is None for block in blocks) else pa.concat_arrays(
            [block.known_admissions for block in blocks]),
        _first_forms(blocks),
    )  # fmt: skip


def _first_forms(blocks: Sequence[Block]) -> FirstForm | None:
    forms = list({id(block.first.block): block.first.block for block in blocks if block.first is not None}.values())
    if not forms:
        return None
    starts = dict(zip(map(id, forms), np.cumsum([0, *map(len, forms)]), strict=False))
    rows = [
        np.full(len(block), -1) if block.first is None
        else np.where(block.first.rows < 0, -1, block.first.rows + starts[id(block.first.block)])
        for block in blocks
    ]  # fmt: skip
    return FirstForm(forms[0] if len(forms) == 1 else _joined(forms), np.concatenate(rows))


def in_order(blocks: Sequence[Block]) -> Numbers:
    """The positions that sort the messages of all these blocks by their place in the source, then by part or copy."""
    levels = _levels(blocks, [block.order for block in blocks])
    found: Numbers = np.lexsort((*reversed(levels), np.concatenate([block.origin for block in blocks])))
    return found


def many(blocks: Sequence[Block]) -> int:
    """How many of the first blocks to join: at least one, and as many as have no more than MOST_BYTES."""
    sizes = np.cumsum([block.size for block in blocks])
    return max(1, int(np.searchsorted(sizes, MOST_BYTES, side="right")))


def _parts(blocks: Sequence[Block]) -> Parts | None:
    if all(block.parts is None for block in blocks):
        return None
    nothing = [np.full(len(block), -1) for block in blocks]
    known = [none if block.parts is None else block.parts.index for block, none in zip(blocks, nothing, strict=True)]
    counts = [none if block.parts is None else block.parts.count for block, none in zip(blocks, nothing, strict=True)]
    paths = [() if block.parts is None else block.parts.path for block in blocks]
    return Parts(_levels(blocks, paths), np.concatenate(known), np.concatenate(counts))


def _levels(blocks: Sequence[Block], found: Sequence[tuple[Numbers, ...]]) -> tuple[Numbers, ...]:
    """The numbers of all blocks one behind the other, level by level; -1 for a block that has fewer levels."""
    depth = max(map(len, found))
    return tuple(
        np.concatenate([levels[number] if number < len(levels) else np.full(len(block), -1)
                        for block, levels in zip(blocks, found, strict=True)])
        for number in range(depth)
    )  # fmt: skip

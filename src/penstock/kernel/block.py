"""Messages on their way through the steps of an app, many at once.

What a source gave, the *arrived* messages, stays as it is. A block says which of them it has, and which row of a table
of bodies each one is now: a step that moves messages chooses positions, and only a step that makes new bodies makes a
new table.
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
"""Of messages that are handled at once; Arrow's columns of text end at eight times that."""
HEADERS, ATTACHMENTS = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.binary())


@dataclass(frozen=True)
class Arrived:
    """Neighbouring messages of a source: bodies, where each is, and what else the source gives of them.

    Messages that come from where they waited are of several sources: what is one for all others is then a column.
    Their place in the batch is their `order`, whatever their position. They may be parts, with `parents`, and their
    bodies may be `written`: JSON of the scope with that number. `fields` are those of the bodies, where the source has
    columns and nothing needs to be decoded. Dead letters that come again were `tried` before.
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
        """The number of the try that begins when messages come to a route; None if it is the first for all."""
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
    """Which part of its message each one is: its index at every splitter on the way, -1 where it was not split.

    `index` and `count` are those of the last time, -1 for a message that is no part.
    """

    path: tuple[Numbers, ...]
    index: Numbers
    count: Numbers

    def take(self, rows: Numbers) -> Parts:
        return Parts(tuple(level[rows] for level in self.path), self.index[rows], self.count[rows])


@dataclass(frozen=True)
class FirstForm:
    """Messages as they came to the start of their route, for another try from there; -1 where there is none."""

    block: Block
    rows: Numbers


@dataclass(frozen=True)
class Block:
    """Messages in one place, with bodies of one scope.

    `origin` says which of those that arrived each one is, or is made of, and `row` which row of the table has its
    fields. `headers` are those that another try has changed, `attempt` the number of the try in this route. `order` has
    the number of the part or copy at every step that made several, -1 where one made none. `members` says, for every
    step around them that may stop what it has made, of which member of its families each message is made. `keyed` has
    the key of each message at the step that remembers to which they have come, and what else it asks of them.
    `admitted` are the keys under which receivers have let each one through, where these may have to forget them.
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
        """These messages, by position; one may be there several times."""
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
        """The same messages with new bodies: a row for each."""
        return replace(self, scope=scope, table=table, row=np.arange(len(table)))

    @cached_property
    def fields(self) -> pa.StructArray:
        """The bodies in the order of the messages."""
        return self.table if self._is_whole else self.table.take(pa.array(self.row))

    @property
    def size(self) -> int:
        """About the bytes of these messages: as they came, each time they are there."""
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
        """Parts of these messages; where there is no index the message stays itself."""
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
    """Blocks of one scope and one source as one, in the order of the source."""
    if len(blocks) == 1:
        return blocks[0]
    joined = _joined(blocks)
    return joined.take(in_order([joined]))


def _joined(blocks: Sequence[Block]) -> Block:
    """One behind the other."""
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
    """The positions of messages of several blocks, one behind the other, in the order of the source and of copies."""
    levels = _levels(blocks, [block.order for block in blocks])
    found: Numbers = np.lexsort((*reversed(levels), np.concatenate([block.origin for block in blocks])))
    return found


def many(blocks: Sequence[Block]) -> int:
    """How many of the blocks are taken together: at least one, and no more than memory is good for."""
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
    """Levels of numbers one behind the other; where a block has fewer of them, -1."""
    depth = max(map(len, found))
    return tuple(
        np.concatenate([levels[number] if number < len(levels) else np.full(len(block), -1)
                        for block, levels in zip(blocks, found, strict=True)])
        for number in range(depth)
    )  # fmt: skip

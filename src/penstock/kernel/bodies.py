"""The bytes of bodies for sinks and dead letters: the original bytes, or JSON written from the fields."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.formats.jsonnested import write_bodies
from penstock.kernel.block import MOST_BYTES, Block, Numbers, in_order, together
from penstock.kernel.content import fitted
from penstock.kernel.plain import to_python


def in_slices(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """The blocks of one sink in slices of about MOST_BYTES, in the order of messages, with one block for each scope."""
    for slice in slices(blocks):
        some = [block.take(rows) for block, rows in zip(blocks, slice, strict=True) if len(rows)]
        scopes = sorted({block.scope.number for block in some})
        yield [together([block for block in some if block.scope.number == number]) for number in scopes]


def slices(blocks: Sequence[Block]) -> Iterator[list[Numbers]]:
    """The positions in each block that belong to a slice, slice by slice, in the order of messages."""
    if sum(block.size for block in blocks) <= MOST_BYTES:
        yield [np.arange(len(block)) for block in blocks]
        return
    order, starts = in_order(blocks), np.cumsum([0, *map(len, blocks)])
    number = np.empty(len(order), np.int64)
    sizes = np.concatenate([block.arrived.sizes[block.origin] for block in blocks])
    number[order] = np.cumsum(sizes[order]) // MOST_BYTES
    for one in np.unique(number).tolist():
        yield [np.flatnonzero(number[start:end] == one) for start, end in itertools.pairwise(starts)]


def body_of(block: Block, written_anew: Collection[int]) -> pa.Array:
    number = block.scope.number
    return written(block) if number in written_anew and block.arrived.written != number else raw(block)


def raw(block: Block) -> pa.Array:
    bodies = block.arrived.bodies
    if len(block) == len(bodies) and bool((block.origin[1:] > block.origin[:-1]).all()):
        return bodies
    return bodies.take(pa.array(block.origin))


def written(block: Block) -> pa.Array:
    """A JSON object for every message, with the bytes that the reference writes."""
    wanted = block.scope.wanted
    return write_bodies(fitted(block.fields, wanted), wanted)


def kept(block: Block) -> list[dict[str, Any] | None]:
    """The fields of each rewritten body, None for an original one; they are stored with dead letters, for a replay."""
    if block.scope.raw:
        return [None] * len(block)
    return to_python(fitted(block.fields, block.scope.wanted), block.scope.wanted)

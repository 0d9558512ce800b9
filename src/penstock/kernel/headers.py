"""Set and remove headers of all messages of a block."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernel.block import HEADERS, Block


def with_headers(block: Block, values: Mapping[str, pa.Array], removed: Collection[str] = ()) -> Block:
    """The messages with these headers set and the `removed` ones removed; a value that is null sets no header."""
    every = np.arange(len(block))
    before = block.known_headers.cast(HEADERS).take(pa.array(every))  # neither sliced nor with entries under a null
    kept = ~np.asarray(pc.is_in(before.keys, pa.array([*values, *removed], pa.string())), bool)
    there = [every[value.is_valid().to_numpy(zero_copy_only=False)] for value in values.values()]
    owner = np.concatenate([np.repeat(every, np.diff(before.offsets.to_numpy()))[kept], *there])
    new = (pa.repeat(name, len(rows)) for name, rows in zip(values, there, strict=True))
    names = [before.keys.filter(pa.array(kept)), *new]
    texts = [before.items.filter(pa.array(kept)), *(value.drop_null() for value in values.values())]
    order = pa.array(np.argsort(owner, kind="stable"))
    ends = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(block))))).astype(np.int32)
    headers = pa.MapArray.from_arrays(pa.array(ends), pa.concat_arrays(names).take(order),
                                      pa.concat_arrays(texts).take(order), type=HEADERS)  # fmt: skip
    return replace(block, headers=headers)

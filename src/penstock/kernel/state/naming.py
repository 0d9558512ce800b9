"""Give messages that an aggregator has made an id, a lineage and headers of their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.envelope import COUNT, ENVELOPE, HEADERS, ID, INDEX, PARENT
from penstock.kernel.block import Numbers
from penstock.kernel.state.rows import COMPLETED_BY, GROUP_SIZE, KEY, replaced
from penstock.kernel.table import flat
from penstock.patterns.aggregate import COMPLETED_BY as COMPLETED_HEADER
from penstock.patterns.aggregate import CORRELATION
from penstock.patterns.aggregate import GROUP_SIZE as SIZE_HEADER

_ADDED = (CORRELATION, COMPLETED_HEADER, SIZE_HEADER)


def named(rows: pa.Table, is_made: Numbers, by_key: bool) -> pa.Table:
    """The rows, in which new messages have their own ids and headers instead of those of their first member."""
    made = pa.array(is_made)
    sizes = flat(rows, GROUP_SIZE)
    others = pc.subtract(sizes, 1).cast(pa.string())
    identity = pc.binary_join_element_wise(flat(rows, ID), others, "+") if by_key else flat(rows, PARENT)
    about = [flat(rows, KEY), flat(rows, COMPLETED_BY), sizes.cast(pa.string())]
    headers = _headers(flat(rows, HEADERS), is_made, about)
    nothing = {name: pa.nulls(len(rows), ENVELOPE.field(name).type) for name in (PARENT, INDEX, COUNT)}
    return replaced(rows, {ID: pc.if_else(made, identity, flat(rows, ID)), HEADERS: headers, **{
        name: pc.if_else(made, none, flat(rows, name)) for name, none in nothing.items()}})  # fmt: skip


def _headers(before: pa.MapArray, is_made: Numbers, about: list[pa.Array]) -> pa.MapArray:
    """The headers of each row; those of new messages also describe the group."""
    whole = before.take(pa.array(np.arange(len(before))))  # neither sliced nor with entries under a null
    keys, items = whole.keys, whole.items
    rows = np.repeat(np.arange(len(before)), np.diff(whole.offsets.to_numpy()))
    kept = ~(is_made[rows] & np.asarray(pc.is_in(keys, pa.array(_ADDED))))
    made = np.flatnonzero(is_made)
    owner = np.concatenate([rows[kept], np.repeat(made, len(_ADDED))])
    order = np.argsort(owner, kind="stable")
    told = [part.take(pa.array(made)) for part in about]
    places = np.arange(len(made) * len(_ADDED)).reshape(len(_ADDED), -1).T.ravel()
    values = pa.concat_arrays([items.filter(pa.array(kept)), pa.concat_arrays(told).take(pa.array(places))])
    names = pa.concat_arrays([keys.filter(pa.array(kept)), pa.array(list(_ADDED) * len(made), pa.string())])
    ends = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(before))))).astype(np.int32)
    chosen = pa.array(order)
    return pa.MapArray.from_arrays(pa.array(ends), names.take(chosen), values.take(chosen))

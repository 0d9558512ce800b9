"""Idempotent receiver: of messages with the same key only the first goes on, a whole batch of keys at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.envelope import AT
from penstock.kernel.state.algorithm import Moment, Outcome, filled
from penstock.kernel.state.keys import HIGH, LOW, Keys
from penstock.kernel.state.rows import replaced
from penstock.kernel.state.store import DEADLINE, GONE, LEADING, NEVER, WEIGHT

BATCH = "batch"
"""The batch in which a key was first seen."""

PAYLOAD = pa.schema([(WEIGHT, pa.int64()), (BATCH, pa.int64())])


@dataclass(frozen=True)
class Receiving:
    """The settings of one receiver; `keep` is in microseconds, `oldest` is the first batch whose keys are remembered.

    Whether the second message of a key is a duplicate is known only when it is known whether the first, in the same
    batch, has failed. Until then it goes to the place `undecided`, which is that of the duplicates where nothing can
    fail.
    """

    keep: int | None
    oldest: int
    duplicates: int
    undecided: int

    @property
    def payload(self) -> pa.Schema:
        return PAYLOAD

    def __call__(self, held: pa.Table, rows: pa.Table, moment: Moment) -> Outcome:
        known = held.filter(self.alive(held, moment.now))
        known_keys, arrived = Keys.of(known), Keys.of(rows)
        old = known_keys.find(arrived) >= 0
        first = np.zeros(len(rows), bool)
        first[arrived.starts()] = True
        places = np.where(old, self.duplicates, np.where(first, rows.column(AT).to_numpy(), self.undecided))
        fresh = arrived[first & ~old]
        out = replaced(rows, {AT: places.astype(np.int32)})
        return Outcome([out], self._remembered(fresh, moment), unchanged=known_keys)

    def alive(self, held: pa.Table, now: int) -> pa.ChunkedArray:
        return pc.and_(pc.greater(held.column(DEADLINE), now), pc.greater_equal(held.column(BATCH), self.oldest))

    def _remembered(self, keys: Keys, moment: Moment) -> pa.Table:
        count = len(keys)
        deadline = NEVER if self.keep is None else moment.now + self.keep
        columns = {
            HIGH: pa.array(keys.high), LOW: pa.array(keys.low), DEADLINE: pa.array(np.full(count, deadline)),
            GONE: pa.array(np.zeros(count, bool)), WEIGHT: pa.array(np.zeros(count, np.int64)),
            BATCH: pa.array(np.full(count, moment.batch)),
        }  # fmt: skip
        return filled(pa.schema([*LEADING, *PAYLOAD]), count, columns)


def oldest_batch(ages: Mapping[int, int], keep_last: int | None) -> int:
    """The first batch whose keys are remembered, to have at least `keep_last`; `ages` counts the keys of each batch."""
    if keep_last is None:
        return 0
    younger = sum(ages.values())
    for batch in sorted(ages):
        younger -= ages[batch]
        if younger < keep_last:
            return batch
    return 0

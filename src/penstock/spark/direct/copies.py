"""Bodies for the list of a group: copied if they are as we would write them, else decoded and written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.formats import Format, Malformed
from penstock.formats.jsonsame import same_as_written
from penstock.formats.written import NewBody
from penstock.patterns.node import read_paths
from penstock.plan.answers import part, question
from penstock.plan.plan import Entry, Plan
from penstock.schema import Struct
from penstock.spark.direct.gathering import gathered

Decoded = tuple[pa.StructArray | None, list[tuple[int, Malformed]]]
_FEWEST = 0.5
"""If fewer than these are copied, the next ones will hardly be either."""


class Copier:
    """`needed` are the fields that steps look at, `whole` those of the body; pickled to the workers."""

    def __init__(self, format: Format, member: NewBody, whole: Struct, needed: Struct) -> None:
        self.format, self.member, self.whole, self.needed = format, member, whole, needed
        self.is_hopeless = format.name != "json"

    def __call__(self, bodies: pa.Array) -> tuple[Decoded, pa.Array]:
        """The fields that are needed and the bodies that cannot be decoded; and all bodies as they are in a list."""
        same = None if self.is_hopeless else same_as_written(bodies, self.whole)
        if same is None or np.count_nonzero(same) < _FEWEST * len(same):
            self.is_hopeless |= same is not None
            return self._written(bodies)
        decoded, _ = self.format.decode_batch(bodies, self.needed)
        rest = np.flatnonzero(~same)
        if not len(rest):
            return (decoded, []), bodies
        (_, failures), written = self._written(bodies.take(pa.array(rest)))
        order = np.arange(len(bodies))
        order[rest] = len(bodies) + np.arange(len(rest))
        members = pa.concat_arrays([bodies, written]).take(pa.array(order))
        return (decoded, [(int(rest[index]), bad) for index, bad in failures]), members

    def _written(self, bodies: pa.Array) -> tuple[Decoded, pa.Array]:
        decoded, failures = self.format.decode_batch(bodies, self.whole)
        return (decoded, failures), self.member.write(decoded)


def copier_of(entry: Entry, plan: Plan) -> Copier | None:
    """For a source whose messages come to the aggregator that gathers them."""
    gathering = gathered(plan)
    if gathering is None or gathering.stage.scope.number != entry.scope.number:
        return None
    asked = (question(stage) for stage in plan.stages() if stage.scope.number == entry.scope.number)
    schema, reads = gathering.stage.scope.schema, read_paths(gathering.keys)
    needed = part(schema, reads.union(*(each.reads for each in asked if each is not None)))
    return Copier(entry.format, gathering.member, schema, needed)

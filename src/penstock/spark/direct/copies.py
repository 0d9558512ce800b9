"""What goes on instead of bodies: copied where it is as we would write it, else decoded and written."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats import Format, Malformed
from penstock.formats.arrow import arrow_type
from penstock.formats.jsonsame import is_compared, same_as_written
from penstock.formats.written import Elements, NewBody
from penstock.patterns.node import NOTHING, read_paths
from penstock.plan.answers import part, question
from penstock.plan.plan import Entry, Plan
from penstock.schema import Struct
from penstock.spark.direct.gathering import gathered

Decoded = tuple[pa.StructArray | None, list[tuple[int, Malformed]]]
_FEWEST = 0.5
"""If fewer than these are copied, the next ones will hardly be either."""


class Copier:
    """Bodies for the list of a group, or their elements; pickled to the workers.

    `needed` are the fields that steps look at, `whole` those of the body, `parsed` those of which `written` is made.
    """

    def __init__(
        self, format: Format, written: NewBody | Elements, whole: Struct, needed: Struct, parsed: Struct
    ) -> None:
        self.format, self.written, self.whole, self.needed, self.parsed = format, written, whole, needed, parsed
        self.is_hopeless = format.name != "json" or not is_compared(whole, needed)

    def __call__(self, bodies: pa.Array) -> tuple[Decoded, pa.Array]:
        """The fields that are needed, the bodies that cannot be decoded, and what goes on."""
        same = None if self.is_hopeless else same_as_written(bodies, self.whole, self.needed)
        if same is None or np.count_nonzero(same.flags) < _FEWEST * len(bodies):
            self.is_hopeless |= same is not None
            return self.made(bodies)
        copies, rest = bodies if same.parts is None else same.parts, np.flatnonzero(~same.flags)
        if not len(rest):
            return (same.fields, []), copies
        (decoded, failures), made = self.made(bodies.take(pa.array(rest)))
        fields = _replaced(same.fields, rest, _picked(decoded, self.needed))
        return (fields, [(int(rest[index]), bad) for index, bad in failures]), _replaced(copies, rest, made)

    def made(self, bodies: pa.Array) -> tuple[Decoded, pa.Array]:
        decoded, failures = self.format.decode_batch(bodies, self.parsed)
        return (decoded, failures), self.written.write(decoded)


def _picked(decoded: pa.StructArray, fields: Struct) -> pa.StructArray:
    columns = [pc.struct_field(decoded, [name]) for name in fields.names]
    return pa.Array.from_buffers(arrow_type(fields), len(decoded), [None], children=columns)


def _replaced(column: pa.Array, rows: npt.NDArray[np.int64], others: pa.Array) -> pa.Array:
    """The column with others in these rows."""
    order = np.arange(len(column))
    order[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, others]).take(pa.array(order))


def copier_of(entry: Entry, plan: Plan) -> Copier | None:
    """For a source whose messages are gathered by an aggregator, or are split into their elements."""
    gathering, body, scope = gathered(plan), entry.scope.schema, entry.scope.number
    asked = (question(stage) for stage in plan.stages() if stage.scope.number == scope)
    reads = NOTHING.union(*(each.reads for each in asked if each is not None))
    if gathering is not None and gathering.stage.scope.number == scope:
        return Copier(entry.format, gathering.member, body, part(body, reads | read_paths(gathering.keys)), body)
    if isinstance(entry.written, Elements):
        return Copier(entry.format, entry.written, body, part(body, reads), entry.parsed)
    return None

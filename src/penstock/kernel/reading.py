"""Decode the bodies of messages that arrived into the table that steps work on."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from penstock.expr import jsonpath, nodes
from penstock.expr.evaluate import expression_key
from penstock.expr.xpath import column_of
from penstock.formats import Malformed
from penstock.formats.base import DecodedBatch
from penstock.kernel.block import Arrived, Block
from penstock.kernel.content import fitted
from penstock.plan.plan import Entry

Failures = list[tuple[int, Malformed]]
"""The positions of messages that cannot be decoded, each with the reason."""


class Decoder:
    """Decodes the bodies of one source, only the fields that the app reads; pickled to the workers."""

    def __init__(self, entry: Entry) -> None:
        self.format, self.scope = entry.format, entry.scope
        self.xpaths = tuple(path for path in entry.paths if isinstance(path, nodes.XPath))
        self.queries = tuple(path for path in entry.paths if isinstance(path, nodes.JsonPath))

    def __call__(self, arrived: Arrived) -> tuple[Block, Failures]:
        """The messages that can be decoded, as a block, and the positions of the others with the reason."""
        table, failures = self._decoded(arrived)
        good = np.arange(len(arrived.bodies))
        if failures:
            good = np.delete(good, [index for index, _ in failures])
        return Block(arrived, good, self.scope, table, good), failures

    def _decoded(self, arrived: Arrived) -> DecodedBatch:
        bodies, wanted = arrived.bodies, self.scope.wanted
        if not wanted.fields and not self.xpaths and not self.queries:
            return pa.array([{}] * len(bodies), pa.struct([])), []
        if arrived.fields is not None:
            table, failures = fitted(arrived.fields, wanted), Failures()
        else:
            table, failures = self.format.decode_batch(bodies, wanted, xpaths=tuple(map(column_of, self.xpaths)))
        names = [*wanted.names, *map(expression_key, self.xpaths)]
        columns = table.flatten()
        if self.queries:
            answers, more = self._queried(bodies, {index for index, _ in failures})
            columns, names = [*columns, *answers], [*names, *map(expression_key, self.queries)]
            failures = sorted([*failures, *more], key=lambda failure: failure[0])
        elif not self.xpaths:
            return table, failures
        return pa.StructArray.from_arrays(columns, names=names), failures

    def _queried(self, bodies: pa.Array, bad: set[int]) -> tuple[list[pa.Array], Failures]:
        """The answers to JSONPath conditions, document by document."""
        failures: Failures = []
        answers: list[list[bool | None]] = [[None] * len(bodies) for _ in self.queries]
        for index, raw in enumerate(bodies.to_pylist()):
            if index in bad:
                continue
            try:
                document = json.loads(raw)
                for answer, query in zip(answers, self.queries, strict=True):
                    answer[index] = jsonpath.holds(query.query, document)
            except Exception as error:  # one message must not end the run
                failures.append((index, Malformed("WrongType", f"JSONPath cannot be evaluated: {error}")))
        return [pa.array(answer, pa.bool_()) for answer in answers], failures

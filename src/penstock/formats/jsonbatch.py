"""Many JSON bodies to one Arrow struct, fast, and exactly as `json.decode` says.

Machine code comes first, where it is there; the rows that it refuses, and otherwise all rows, go to msgspec.

msgspec checks the syntax of the whole body and the types of the wanted fields. What it refuses is decoded
again, first with STRING fields as raw slices (they take any value), then by the definition, which also words
the reason. What it would accept and the definition would not is looked for first: `_looks_harmless`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.arrow import arrow_type, no_body
from penstock.formats.base import Decoded, DecodedBatch, Malformed
from penstock.formats.compiled import columns
from penstock.formats.jsonrecords import Records, struct_column
from penstock.formats.limits import MAX_BODY_BYTES, MAX_DEPTH, MAX_VARIANT_BYTES, MAX_VARIANT_KEY
from penstock.schema import Struct

Definition: TypeAlias = Callable[[bytes, Struct], Decoded]

_ROWS_AT_ONCE = 2048
"""Few enough that the rows of one round stay in the processor's cache."""

_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_MAY_OVERFLOW = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{200}")
_LONG_STRING = re.compile(rb'"[^"]{%d}' % MAX_VARIANT_KEY)
_AT_THE_ENDS = re.compile(rb'"(?:0001|9999)-[0-9]{2}-[0-9]{2}[Tt ][^"Zz]*"|\\u00[23]')
"""An instant that may lie in another year in UTC, beyond those that there are, also if its digits are escapes."""
_NOT_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_SHORTEST_TOO_DEEP = 2 * (MAX_DEPTH + 1)


def decode_batch(bodies: pa.Array, wanted: Struct, definition: Definition) -> DecodedBatch:
    compiled = columns.read(bodies, wanted)
    if compiled is None:
        return decode_by_msgspec(bodies, wanted, definition)
    return with_refused(*compiled, bodies, wanted, definition)


def with_refused(
    column: pa.StructArray, refused: np.ndarray[Any, Any], bodies: pa.Array, wanted: Struct, definition: Definition
) -> DecodedBatch:
    """The column with the rows filled in that the compiled decoder refused."""
    if not len(refused):
        return column, []
    rest, errors = decode_by_msgspec(bodies.take(pa.array(refused)), wanted, definition)
    order = np.arange(len(column))
    order[refused] = len(column) + np.arange(len(refused))
    whole = pa.concat_arrays([column, rest]).take(pa.array(order))
    return whole, [(int(refused[index]), error) for index, error in errors]


def decode_by_msgspec(bodies: pa.Array, wanted: Struct, definition: Definition) -> DecodedBatch:
    batch = _Batch(wanted, definition)
    starts = range(0, len(bodies), _ROWS_AT_ONCE)
    parts = [batch.part(bodies.slice(start, _ROWS_AT_ONCE), start) for start in starts]
    return pa.concat_arrays(parts) if parts else pa.array([], arrow_type(wanted)), batch.errors


class _Batch:
    """One call: the decoders of its fields and the errors met so far. A row that failed is None."""

    def __init__(self, wanted: Struct, definition: Definition) -> None:
        self.wanted = wanted
        self.definition = definition
        self.records = _records(wanted)
        self.errors: list[tuple[int, Malformed]] = []

    def part(self, bodies: pa.Array, start: int) -> pa.StructArray:
        errors_before = len(self.errors)
        binary = bodies.cast(pa.binary())
        raws = binary.to_pylist()
        if _needs_a_look(binary, self.records):
            rows = [self.row(start + index, raw) for index, raw in enumerate(raws)]
        else:
            rows = self.rows(start, raws)
        missing = None if len(self.errors) == errors_before else [row is None for row in rows]
        return struct_column(self.wanted, rows, missing)

    def rows(self, start: int, raws: list[bytes]) -> list[Any]:
        """A list extended from an iterator keeps what came before an exception: no row is decoded twice."""
        rows: list[Any] = []
        left = iter(raws)
        while True:
            try:
                rows.extend(map(self.records.strict, left))
                return rows
            except _REFUSED:
                rows.append(self.second_try(start + len(rows), raws[len(rows)]))

    def row(self, index: int, raw: bytes | None) -> Any:
        if raw is None:
            self.errors.append((index, no_body()))
            return None
        if not _looks_harmless(raw, self.records):
            return self.by_definition(index, raw)
        try:
            return self.records.strict(raw)
        except _REFUSED:
            return self.second_try(index, raw)

    def second_try(self, index: int, raw: bytes) -> Any:
        try:
            return self.records.lenient(raw)
        except _REFUSED:
            return self.by_definition(index, raw)

    def by_definition(self, index: int, raw: bytes) -> Any:
        fields = self.definition(raw, self.wanted)
        if isinstance(fields, Malformed):
            self.errors.append((index, fields))
            return None
        return self.records.from_value(fields, self.wanted)


@lru_cache(maxsize=256)
def _records(wanted: Struct) -> Records:
    return Records(wanted)


def _needs_a_look(bodies: pa.Array, records: Records) -> bool:
    """Whether a body of this part may be one that msgspec accepts and the definition does not."""
    if bodies.null_count or records.has_variant or records.has_odd_names:
        return True
    if pc.max(pc.binary_length(bodies)).as_py() >= _SHORTEST_TOO_DEEP:
        return True
    if records.has_instants and pc.any(pc.match_substring_regex(bodies, _AT_THE_ENDS.pattern)).as_py():
        return True
    try:
        bodies.cast(pa.string())
    except pa.ArrowInvalid:
        return True
    return False


def _looks_harmless(raw: bytes, records: Records) -> bool:
    """msgspec does not look into strings it skips, nor at depth, the numbers of a VARIANT, or what day it is in UTC."""
    if records.has_odd_names or len(raw) > MAX_BODY_BYTES or _is_too_deep(raw):
        return False
    if records.has_instants and _AT_THE_ENDS.search(raw):
        return False
    if records.has_variant and (_MAY_OVERFLOW.search(raw) or _may_be_too_large(raw)):
        return False
    if raw.isascii():
        return True
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _may_be_too_large(raw: bytes) -> bool:
    """For a VARIANT: the body, or some text in it, is longer than a VARIANT or a key inside one may be."""
    return len(raw) > MAX_VARIANT_KEY and (len(raw) > MAX_VARIANT_BYTES or _LONG_STRING.search(raw) is not None)


def _is_too_deep(raw: bytes) -> bool:
    if len(raw) < _SHORTEST_TOO_DEEP or raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"{[" else -1
        if depth > MAX_DEPTH:
            return True
    return False

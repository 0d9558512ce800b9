"""Output functions: filter, extract or transform messages, by expressions, before they leave the log.

Bodies are JSON objects. A message passes `where` its condition is true; one that is no JSON object, or in which a field
of the expression has another type, does not. `select` makes a new JSON object of named expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.functions import FUNCTIONS, PATTERN
from penstock.expr.nodes import Expr
from penstock.expr.patterns import cost
from penstock.expr.text import parse
from penstock.expr.tokens import tokenize
from penstock.expr.types import require_boolean, type_of
from penstock.expr.variant import bind
from penstock.expr.vectorized import decide_batch, is_vectorized
from penstock.formats.base import Malformed
from penstock.formats.json import Json, written
from penstock.log.headers import read_headers
from penstock.log.inference import fields_of
from penstock.schema import Struct, has_variant
from penstock.schema import schema as read_schema

LONGEST = 8 * 1024
"""Of the text of one expression."""
_BEGINS = np.isin(np.arange(256), np.frombuffer(b"{ \t\n\r", np.uint8))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which messages go out, as their indexes in order; and their new values, if those are not the old ones."""

    kept: np.ndarray[Any, np.dtype[np.int64]]
    values: pa.Array | None


@dataclass(frozen=True, slots=True)
class OutputFunction:
    """Made once from text by `output_function`; then applied to whole batches."""

    where: Expr | None
    select: tuple[tuple[str, Expr], ...]
    fields: Struct
    cost: int = 1
    """Steps for each byte of a message, as the patterns in it may take them."""

    def apply(self, values: pa.Array, headers: pa.Array | None = None) -> Outcome:
        """The messages that pass, and their new values."""
        objects = _may_be_objects(values)
        if len(objects) == len(values):
            return self._applied(values, headers)
        chosen = pa.array(objects)
        outcome = self._applied(values.take(chosen), headers.take(chosen) if headers is not None else None)
        return Outcome(objects[outcome.kept], outcome.values)

    def _applied(self, values: pa.Array, headers: pa.Array | None) -> Outcome:
        if not len(values):
            return Outcome(np.zeros(0, np.int64), None)
        if self.where is None or not self._is_vectorized:
            return self._one_by_one(values, headers)
        bodies, _ = Json(self.fields).decode_batch(values, self.fields)
        passed = pc.and_(bodies.is_valid(), decide_batch(self.where, bodies))
        kept = np.flatnonzero(passed.to_numpy(zero_copy_only=False))
        if not self.select or not len(kept):
            return Outcome(kept, None)
        chosen = pa.array(kept)
        about = None if headers is None else headers.take(chosen)
        made = replace(self, where=None)._one_by_one(values.take(chosen), about)
        return Outcome(kept[made.kept], made.values)

    @property
    def _is_vectorized(self) -> bool:
        assert self.where is not None
        return is_vectorized(self.where, self.fields)

    def _one_by_one(self, values: pa.Array, headers: pa.Array | None) -> Outcome:
        kept, made = [], []
        for index, scope in enumerate(self._scopes(values, headers)):
            if scope is None or (self.where is not None and evaluate(self.where, scope) is not True):
                continue
            kept.append(index)
            if self.select:
                fields = {name: evaluate(value, scope) for name, value in self.select}
                there = {name: written(value, None) for name, value in fields.items() if value is not None}
                made.append(msgspec.json.encode(there))
        return Outcome(np.array(kept, np.int64), pa.array(made, pa.binary()) if self.select else None)

    def _scopes(self, values: pa.Array, headers: pa.Array | None) -> list[Scope | None]:
        form = Json(self.fields)
        read: Sequence[Any] = () if headers is None else headers.to_pylist()
        about = [read_headers(each) for each in read] or [{}] * len(values)
        if has_variant(self.fields):
            bodies: list[Any] = [form.decode(raw.as_py() or b"", self.fields) for raw in values]
            bodies = [None if isinstance(body, Malformed) else body for body in bodies]
        else:
            bodies = form.decode_batch(values, self.fields)[0].to_pylist()
        return [None if body is None else Scope(body, found) for body, found in zip(bodies, about, strict=True)]


@lru_cache(maxsize=256)
def output_function(
    where: str = "", select: tuple[tuple[str, str], ...] = (), schema: str = ""
) -> OutputFunction:
    """Read the expressions, find out which fields they need, and check that all of it goes together."""
    condition = _read(where) if where else None
    values = tuple((name, _read(text)) for name, text in select)
    inferred = fields_of([condition] if condition is not None else [], [value for _, value in values])
    fields = read_schema(schema) if schema else inferred
    if condition is not None:
        require_boolean(condition, fields)
        condition = bind(condition, fields)
    for _, value in values:
        type_of(value, fields)
    made = tuple((name, bind(value, fields)) for name, value in values)
    expressions = [value for _, value in made] + ([condition] if condition is not None else [])
    return OutputFunction(condition, made, fields, sum(map(_cost, expressions)) or 1)


def _cost(expression: Expr) -> int:
    patterns = [part.arguments[1] for part in expression.walk()
                if isinstance(part, nodes.Call) and PATTERN in FUNCTIONS[part.name].arguments]  # fmt: skip
    return sum(cost(str(pattern.value)) for pattern in patterns if isinstance(pattern, nodes.Literal))


def _read(text: str) -> Expr:
    """Text that came over a network: nothing in it may run code or import a module, not even while it is read."""
    if len(text) > LONGEST:
        raise BadExpression(f"an expression of {len(text):,} characters is longer than {LONGEST:,}")
    tokens = tokenize(text)
    for token, following in pairwise(tokens):
        if token.unquoted.lower() == "python" and token.kind in ("name", "quoted") and following.text == "(":
            raise BadExpression("a server does not run Python functions of its clients", None,
                                "use the functions that docs/expressions.md lists")  # fmt: skip
    found = parse(text)
    for part in found.walk():
        if isinstance(part, (nodes.XPath, nodes.JsonPath, nodes.Function)):
            raise BadExpression("a server's expressions read fields of JSON objects, by their names")
        if part == nodes.Meta(nodes.NOW):
            raise BadExpression("a log has no batches, so it has no now()", None, "write the time: TIMESTAMP '...'")
    return found


def _may_be_objects(values: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The messages that begin as a JSON object does: others need no look at what is wrong with them."""
    _, offsets, data = values.buffers()
    if data is None or not data.size or not len(values):  # or only empty values
        return np.zeros(0, np.int64)
    places = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    text = np.frombuffer(data, np.uint8)
    first = text[np.minimum(places[:-1], len(text) - 1)]
    return np.flatnonzero(_BEGINS[first] & (places[1:] > places[:-1]))

"""A schema from sample messages: a start for people to edit, not a contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.errors import BadSchema
from penstock.formats.base import Malformed, WrongValue, read_text
from penstock.formats.csv import split
from penstock.formats.jsontext import Node, NotJson, parse
from penstock.formats.scalars import in_range, parse_scalar
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, VARIANT, Array, Scalar, Struct, Type


@dataclass(slots=True)
class _Seen:
    """What the values at one place were."""

    scalars: set[Scalar] = field(default_factory=set)
    fields: dict[str, _Seen] | None = None
    elements: _Seen | None = None

    def kind(self, of_nothing: Scalar = STRING) -> Type:
        shapes = bool(self.scalars) + (self.fields is not None) + (self.elements is not None)
        if shapes != 1:
            return VARIANT if shapes else of_nothing
        if self.fields is not None:
            return self.struct() if self.fields else VARIANT
        if self.elements is not None:
            return Array(self.elements.kind(of_nothing=VARIANT))
        return _widest(self.scalars, VARIANT)

    def struct(self) -> Struct:
        return Struct(tuple((name, inner.kind()) for name, inner in (self.fields or {}).items()))


def infer(samples: Iterable[bytes]) -> Struct:
    """The schema that fits all samples which are JSON objects; the others are skipped.

    >>> print(infer([b'{"id": 1, "tags": ["a"]}', b'{"id": 2.5}']).ddl())
    id DOUBLE, tags ARRAY<STRING>
    """
    seen = _Seen()
    for raw in samples:
        text = read_text(raw)
        try:
            root = None if isinstance(text, Malformed) else parse(text)
        except NotJson:
            continue
        if root is not None and root.kind == "object":
            _see(root, seen)
    if seen.fields is None:
        raise BadSchema("no sample is a JSON object", fix="give other samples, or declare the schema")
    return seen.struct()


def _see(node: Node, seen: _Seen) -> None:
    if node.kind == "object":
        seen.fields = {} if seen.fields is None else seen.fields
        for name, inner in node.members:
            _see(inner, seen.fields.setdefault(name, _Seen()))
    elif node.kind == "array":
        seen.elements = seen.elements or _Seen()
        for _, inner in node.members:
            _see(inner, seen.elements)
    elif node.kind == "string":
        seen.scalars.add(STRING)
    elif node.kind in ("true", "false"):
        seen.scalars.add(BOOLEAN)
    elif node.kind == "number":
        whole = not any(mark in node.text for mark in ".eE") and in_range(node.text) is not None
        seen.scalars.add(INTEGER if whole else DOUBLE)


def infer_csv(header: str, rows: Sequence[str], delimiter: str = ",", quote: str = '"') -> Struct:
    """Names from the header; each type is the narrowest that fits all cells. Bad rows are skipped."""
    names = split(header, delimiter, quote)
    if isinstance(names, Malformed):
        raise BadSchema(f"cannot read the CSV header: {names.reason}")
    named = [name or f"column_{index + 1}" for index, name in enumerate(names)]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise BadSchema(f"column {twice!r} occurs twice in the CSV header")
    seen: list[set[Scalar]] = [set() for _ in named]
    for row in rows:
        cells = split(row, delimiter, quote)
        if not isinstance(cells, Malformed) and len(cells) == len(named):
            for kinds, cell in zip(seen, cells, strict=True):
                if cell is not None:
                    kinds.add(_cell_kind(cell))
    return Struct(tuple((name, _widest(kinds, STRING)) for name, kinds in zip(named, seen, strict=True)))


def _cell_kind(cell: str) -> Scalar:
    for kind in (INTEGER, DOUBLE, BOOLEAN):
        try:
            parse_scalar(cell, kind, "")
        except WrongValue:
            continue
        return kind
    return STRING


def _widest(kinds: set[Scalar], conflict: Scalar) -> Scalar:
    if kinds == {INTEGER, DOUBLE}:
        return DOUBLE
    return next(iter(kinds)) if len(kinds) == 1 else conflict

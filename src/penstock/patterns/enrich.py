"""Content enricher: new fields from constants, from the message itself, or from a table looked up by key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.endpoints.lookup import LookupTable, lookup_table
from penstock.errors import BadEndpoint, BadRoute, TypeMismatch, UnknownField, did_you_mean
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import type_of
from penstock.patterns.drawing import arrow, box, square
from penstock.patterns.node import DEAD, EXPRESSION, Node, Paths, read_paths
from penstock.patterns.translate import Mapped, mapped, mapping_tuple
from penstock.patterns.verb import Verb
from penstock.schema import VARIANT, DecimalType, Path, Struct
from penstock.yaml.writing import given, unless, write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item

NULL_POLICY = "null"
_ICON = square(11, 17, 10) + arrow((25, 22), (35, 22)) + square(40, 13, 10) + box(40, 23, 10, 8, filled=True)
Targets = tuple[tuple[str, ...], ...]


def _below(targets: Targets, name: str) -> Targets:
    return tuple(target[1:] for target in targets if target[0] == name)


def _enriched(body: Struct, added: Struct, targets: Targets, at: tuple[str, ...] = ()) -> Struct:
    """The incoming fields, then those that are new or replaced; a target inside a struct changes nothing beside it."""
    fields = dict(body.fields)
    for name, kind in added.fields:
        inner, known = _below(targets, name), fields.get(name)
        if known is None or () in inner:
            fields.pop(name, None)
            fields[name] = kind
        elif isinstance(known, Struct):
            assert isinstance(kind, Struct)
            fields[name] = _enriched(known, kind, inner, (*at, name))
        else:
            path = ".".join((*at, name))
            says = "declare its fields: STRUCT<...>" if known == VARIANT else "choose another name"
            raise TypeMismatch(f"field {path!r} is {known}: {'.'.join((path, *inner[0]))!r} cannot be put into it",
                               fix=f"{says}, or give {path!r} a new value as a whole")  # fmt: skip
    return Struct(tuple(fields.items()))


def _kept(wanted: Paths, body: Struct, targets: Targets) -> Paths:
    """The incoming fields that stay as they are in the wanted part of the new body."""
    return frozenset(kept for path in wanted for kept in _kept_below(path, body, targets))


def _kept_below(path: Path, body: Struct, targets: Targets) -> Iterator[Path]:
    for name, kind in body.fields:
        if path and path[0] != name:
            continue
        inner = _below(targets, name)
        if not inner:
            yield (name, *path[1:])
        elif isinstance(kind, Struct) and () not in inner:
            yield from ((name, *rest) for rest in _kept_below(path[1:], kind, inner))


@dataclass(frozen=True, slots=True)
class Enrich(Mapped):
    verb: ClassVar[str] = "enrich"
    pattern: ClassVar[str] = "content enricher"
    icon: ClassVar[str] = _ICON

    def output(self, body: Struct) -> Struct:
        return _enriched(body, mapped(self.mappings, body), self._targets())

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return _kept(wanted, body, self._targets()) | Mapped.requires(self, wanted, body)

    def _targets(self) -> Targets:
        return tuple(target for target, _ in self.mappings)

    @classmethod
    def read(cls, item: Item) -> Node:
        return enrich(item.expressions())


@dataclass(frozen=True, slots=True)
class EnrichFromTable(Node):
    table: LookupTable
    on: Expr
    fields: tuple[str, ...]
    into: str | None = None
    missing: str = NULL_POLICY

    verb: ClassVar[str] = "enrich_from"
    pattern: ClassVar[str] = "content enricher"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = _ICON
    rewrites: ClassVar[bool] = True

    @property
    def needs_value(self) -> bool:
        return self.missing == DEAD

    def expressions(self) -> tuple[Expr, ...]:
        return (self.on,)

    def added(self) -> Struct:
        chosen = self.looked_up()
        return Struct(((self.into, chosen),)) if self.into else chosen

    def looked_up(self) -> Struct:
        known = self.table.schema
        for name in self.fields:
            if known.get(name) is None:
                raise UnknownField(
                    f"the table {self.table} has no column {name!r}", fix=did_you_mean(name, known.names)
                )
        return Struct(tuple((name, kind) for name, kind in known.fields if name in self.fields))

    def output(self, body: Struct) -> Struct:
        key, kind = self.table.key_type, type_of(self.on, body)
        if kind != key and not (isinstance(kind, DecimalType) and isinstance(key, DecimalType)):
            raise TypeMismatch(f"the key of {self.table} is {key}, but {to_text(self.on)} is {kind}")
        return _enriched(body, self.added(), self._targets())

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return _kept(wanted, body, self._targets()) | read_paths((self.on,))

    def _targets(self) -> Targets:
        return tuple((name,) for name in self.added().names)

    def detail(self) -> str:
        into = f" into {self.into}" if self.into else ""
        return f"{', '.join(self.fields)}{into} from {self.table} on {to_text(self.on)}, else {self.missing}"

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys(("table", "key", "on"), ("name", "fields", "into", "missing"))
        with found["table"].located():
            table = lookup_table(found["table"].text(), found["key"].text(), found.text("name") or "")
        return enrich_from(table, found["on"].expression(), found.texts("fields") or None, found.text("into"),
                           found.text("missing") or NULL_POLICY)  # fmt: skip

    def write(self) -> object:
        extra = given(into=self.into, missing=unless(NULL_POLICY, self.missing))
        on = write_expression(self.on)
        return {**_write_table(self.table), "on": on, "fields": list(self.fields), **extra}


def _write_table(table: LookupTable) -> dict[str, object]:
    path = table.path or (table.name if os.path.isfile(table.name) else None)
    if path is None:
        raise BadEndpoint(f"the table {table} was not read from a file and cannot be written as YAML", None,
                          "save it as .csv, .parquet or .jsonl and read it with lookup_table(path, key)")  # fmt: skip
    return {"table": path, "key": table.key, **given(name=unless(os.path.basename(path), table.name))}


def enrich(mappings: Mapping[str, object]) -> Enrich:
    return Enrich(mapping_tuple(mappings, "enrich"))


def enrich_from(
    table: LookupTable, on: object, fields: list[str] | None = None, into: str | None = None, missing: str = NULL_POLICY
) -> EnrichFromTable:
    """`missing`: what a message without an entry becomes: "null" (no new fields) or "dead"."""
    if missing not in (NULL_POLICY, DEAD):
        raise BadRoute(f"missing={missing!r} is not a policy", fix="write missing='null' or missing='dead'")
    chosen = tuple(fields) if fields else tuple(name for name in table.schema.names if name != table.key)
    return EnrichFromTable(table, expression(on), chosen, into, missing)


class EnrichVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Enrich, EnrichFromTable)

    def enrich(self, mappings: Mapping[str, object], name: str | None = None) -> Self:
        """Content enricher: more fields, from constants or from the message itself."""
        return self.then(lambda: enrich(mappings), name)

    def enrich_from(
        self, table: LookupTable, on: object, fields: list[str] | None = None, into: str | None = None,
        missing: str = NULL_POLICY, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Content enricher: more fields, from the row of a table whose key is `on`."""
        return self.then(lambda: enrich_from(table, on, fields, into, missing), name)

"""Content enricher: new fields from constants, from the message itself, or from a table looked up by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from penstock.endpoints.lookup import LookupTable
from penstock.errors import BadRoute, TypeMismatch, UnknownField, did_you_mean
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import type_of
from penstock.patterns.node import DEAD, EXPRESSION, Node, Paths, read_paths, top_level
from penstock.patterns.translate import Mappings, is_wanted, mapped, mapping_text, mapping_tuple
from penstock.schema import Struct, merge

NULL_POLICY = "null"


def _kept(body: Struct, added: Struct) -> Struct:
    """The incoming fields that are not replaced."""
    return Struct(tuple((name, kind) for name, kind in body.fields if name not in added.names))


@dataclass(frozen=True, slots=True)
class Enrich(Node):
    mappings: Mappings

    verb: ClassVar[str] = "enrich"
    pattern: ClassVar[str] = "content enricher"
    template: ClassVar[str] = EXPRESSION
    rewrites: ClassVar[bool] = True

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(value for _, value in self.mappings)

    def output(self, body: Struct) -> Struct:
        added = mapped(self.mappings, body)
        return merge(_kept(body, added), added)

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        kept = _kept(body, mapped(self.mappings, body))
        used = tuple(value for target, value in self.mappings if is_wanted(target, wanted))
        return top_level(wanted, kept.names) | read_paths(used)

    def detail(self) -> str:
        return mapping_text(self.mappings)


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
    rewrites: ClassVar[bool] = True

    @property
    def keeps_order(self) -> bool:
        return self.table.is_small

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
        if kind != key:
            raise TypeMismatch(f"the key of {self.table} is {key}, but {to_text(self.on)} is {kind}")
        added = self.added()
        return merge(_kept(body, added), added)

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return top_level(wanted, _kept(body, self.added()).names) | read_paths((self.on,))

    def detail(self) -> str:
        into = f" into {self.into}" if self.into else ""
        return f"{', '.join(self.fields)}{into} from {self.table} on {to_text(self.on)}, else {self.missing}"


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

"""Message translator: a new body, each field an operator tree over the old one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import NULL, type_of
from penstock.patterns.node import EXPRESSION, Node, Paths, read_paths
from penstock.patterns.verb import Verb
from penstock.schema import EMPTY, Struct, Type, inside, merge, quote_name
from penstock.yaml.writing import write_mapping

if TYPE_CHECKING:
    from penstock.yaml.item import Item

Mappings = tuple[tuple[tuple[str, ...], Expr], ...]


@dataclass(frozen=True, slots=True)
class Mapped(Node):
    """A step that makes fields of expressions."""

    mappings: Mappings

    template: ClassVar[str] = EXPRESSION
    rewrites: ClassVar[bool] = True

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(value for _, value in self.mappings)

    def used(self, wanted: Struct) -> tuple[Expr, ...]:
        return tuple(value for target, value in self.mappings if inside(wanted, target) is not None)

    def output(self, body: Struct) -> Struct:
        return mapped(self.mappings, body)

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return read_paths(tuple(value for target, value in self.mappings if _is_wanted(target, wanted)))

    def detail(self) -> str:
        return ", ".join(f"{'.'.join(map(quote_name, target))} = {to_text(value)}" for target, value in self.mappings)

    def write(self) -> object:
        return write_mapping((".".join(target), value) for target, value in self.mappings)


@dataclass(frozen=True, slots=True)
class Translate(Mapped):
    verb: ClassVar[str] = "translate"
    pattern: ClassVar[str] = "message translator"
    icon: ClassVar[str] = '<path d="M14,8 V36 L32,22 Z"/><path d="M50,8 V36 L32,22 Z" class="full"/>'

    @classmethod
    def read(cls, item: Item) -> Node:
        return translate(item.expressions())


def translate(mappings: Mapping[str, object]) -> Translate:
    """Keys name the new fields (`"owner.name"` nests), values are expressions."""
    return Translate(mapping_tuple(mappings, "translate"))


def mapping_tuple(mappings: Mapping[str, object], verb: str) -> Mappings:
    if not mappings:
        raise BadRoute(f"{verb} needs at least one field", fix=f'write {verb}({{"field": expression}})')
    listed = tuple((tuple(target.split(".")), expression(value)) for target, value in mappings.items())
    targets = [target for target, _ in listed]
    for target in targets:
        if not all(target):
            raise BadRoute(f"{'.'.join(target)!r} is not a field name")
        if any(other != target and other[: len(target)] == target for other in targets):
            raise BadRoute(f"field {'.'.join(target)!r} is both a value and an object")
    return listed


def mapped(mappings: Mappings, body: Struct) -> Struct:
    result = EMPTY
    for target, value in mappings:
        kind = type_of(value, body)
        if kind == NULL:
            raise TypeMismatch(f"field {'.'.join(target)!r} is never there", fix="leave it out, or give it a value")
        nested: Type = kind
        for name in reversed(target):
            nested = Struct(((name, nested),))
        assert isinstance(nested, Struct)
        result = merge(result, nested)
    return result


def _is_wanted(target: tuple[str, ...], wanted: Paths) -> bool:
    return any(path[: len(target)] == target or target[: len(path)] == path for path in wanted)


class TranslateVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Translate,)

    def translate(self, mappings: Mapping[str, object], name: str | None = None) -> Self:
        """Message translator: a new body, each field an expression over the old one."""
        return self.then(lambda: translate(mappings), name)

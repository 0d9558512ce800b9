"""Message filter: keep the messages for which the predicate is true; count the rest, or send them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import require_boolean
from penstock.patterns.node import DEAD, FALSE, PREDICATE, Node, check_channel, check_missing
from penstock.patterns.verb import Verb
from penstock.schema import Struct
from penstock.yaml.writing import given, unless, write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item


@dataclass(frozen=True, slots=True)
class Filter(Node):
    predicate: Expr
    discard: str | None = None
    missing: str = FALSE

    verb: ClassVar[str] = "filter"
    pattern: ClassVar[str] = "message filter"
    template: ClassVar[str] = PREDICATE
    icon: ClassVar[str] = '<path d="M18,9 H46 L36,22 V35 L28,31 V22 Z"/>'
    messages: ClassVar[str] = "1:0|1"

    @property
    def needs_value(self) -> bool:
        return self.missing == DEAD

    def expressions(self) -> tuple[Expr, ...]:
        return (self.predicate,)

    def sends_to(self) -> tuple[str, ...]:
        return (self.discard,) if self.discard else ()

    def output(self, body: Struct) -> Struct:
        require_boolean(self.predicate, body)
        return body

    def detail(self) -> str:
        return to_text(self.predicate) + (f"; else -> {self.discard}" if self.discard else "")

    @classmethod
    def read(cls, item: Item) -> Node:
        if not item.is_mapping or "where" not in item.entries():
            return filter_messages(item.expression())
        found = item.keys(("where",), ("discard", "missing"))
        return filter_messages(found["where"].expression(), found.text("discard"), found.text("missing") or FALSE)

    def write(self) -> object:
        where = write_expression(self.predicate)
        extra = given(discard=self.discard, missing=unless(FALSE, self.missing))
        return {"where": where, **extra} if extra else where


def filter_messages(predicate: object, discard: str | None = None, missing: str = FALSE) -> Filter:
    return Filter(condition(predicate), discard and check_channel(discard), check_missing(missing))


class FilterVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Filter,)

    def filter(
        self, predicate: object, discard: str | None = None, missing: str = FALSE, name: str | None = None
    ) -> Self:
        """Message filter: keep what the predicate is true for; the rest is counted, or goes to `discard`."""
        return self.then(lambda: filter_messages(predicate, discard, missing), name)

"""Message filter: keep the messages for which the predicate is true; count the rest, or send them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import require_boolean
from penstock.patterns.node import FALSE, PREDICATE, Node, check_channel, check_missing
from penstock.schema import Struct


@dataclass(frozen=True, slots=True)
class Filter(Node):
    predicate: Expr
    discard: str | None = None
    missing: str = FALSE

    verb: ClassVar[str] = "filter"
    pattern: ClassVar[str] = "message filter"
    template: ClassVar[str] = PREDICATE
    messages: ClassVar[str] = "1:0|1"

    def expressions(self) -> tuple[Expr, ...]:
        return (self.predicate,)

    def sends_to(self) -> tuple[str, ...]:
        return (self.discard,) if self.discard else ()

    def output(self, body: Struct) -> Struct:
        require_boolean(self.predicate, body)
        return body

    def detail(self) -> str:
        return to_text(self.predicate) + (f"; else -> {self.discard}" if self.discard else "")


def filter_messages(predicate: object, discard: str | None = None, missing: str = FALSE) -> Filter:
    return Filter(condition(predicate), discard and check_channel(discard), check_missing(missing))

"""Content-based router: the first condition that is true decides; the rest goes to the explicit default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.errors import BadRoute
from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import require_boolean
from penstock.patterns.node import FALSE, PREDICATE, Node, check_channel, check_missing
from penstock.schema import Struct


@dataclass(frozen=True, slots=True)
class Choice(Node):
    cases: tuple[tuple[str, Expr], ...]
    otherwise: str
    missing: str = FALSE

    verb: ClassVar[str] = "choice"
    pattern: ClassVar[str] = "content-based router"
    template: ClassVar[str] = PREDICATE
    channels: ClassVar[str] = "1:n"
    ends: ClassVar[bool] = True

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(test for _, test in self.cases)

    def sends_to(self) -> tuple[str, ...]:
        return (*(channel for channel, _ in self.cases), self.otherwise)

    def output(self, body: Struct) -> Struct:
        for _, test in self.cases:
            require_boolean(test, body)
        return body

    def detail(self) -> str:
        tests = [f"{to_text(test)} -> {channel}" for channel, test in self.cases]
        return "; ".join([*tests, f"otherwise -> {self.otherwise}"])


def choice(cases: dict[str, object] | list[tuple[str, object]], otherwise: str | None, missing: str = FALSE) -> Choice:
    listed = list(cases.items()) if isinstance(cases, dict) else list(cases)
    if not listed:
        raise BadRoute(
            "a choice needs at least one case", fix='write choice({"channel": condition}, otherwise="other")'
        )
    if otherwise is None:
        raise BadRoute("a choice says where the rest goes", fix='add otherwise="channel"')
    return Choice(tuple((check_channel(channel), condition(test)) for channel, test in listed),
                  check_channel(otherwise), check_missing(missing))  # fmt: skip

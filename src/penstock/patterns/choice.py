"""Content-based router: the first condition that is true decides; the rest goes to the explicit default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.errors import BadRoute
from penstock.expr.columns import condition
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import require_boolean
from penstock.patterns.drawing import arrow, dot, line
from penstock.patterns.node import DEAD, FALSE, PREDICATE, Node, check_channel, check_missing
from penstock.patterns.verb import Verb
from penstock.schema import Struct
from penstock.yaml.writing import given, unless, write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item


@dataclass(frozen=True, slots=True)
class Choice(Node):
    cases: tuple[tuple[str, Expr], ...]
    otherwise: str
    missing: str = FALSE

    verb: ClassVar[str] = "choice"
    pattern: ClassVar[str] = "content-based router"
    template: ClassVar[str] = PREDICATE
    icon: ClassVar[str] = (
        line((8, 22), (22, 22)) + dot(24, 22) + line((26, 21), (42, 11)) + arrow((42, 11), (55, 11))
        + '<polyline points="42,33 55,33" class="faint"/>' + dot(42, 11, 2) + dot(42, 33, 2)
    )  # fmt: skip
    channels: ClassVar[str] = "1:n"
    ends: ClassVar[bool] = True

    @property
    def needs_value(self) -> bool:
        return self.missing == DEAD

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

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys(("cases", "otherwise"), ("missing",))
        cases = found["cases"]
        parts = [entry.expressions() for entry in cases.listed()] if cases.is_list else [cases.expressions()]
        listed = [case for part in parts for case in part.items()]
        return choice(listed, found["otherwise"].text(), found.text("missing") or FALSE)

    def write(self) -> object:
        tests = [(channel, write_expression(test)) for channel, test in self.cases]
        repeated = len({channel for channel, _ in tests}) < len(tests)
        listed = [{channel: test} for channel, test in tests] if repeated else dict(tests)
        return {"cases": listed, "otherwise": self.otherwise, **given(missing=unless(FALSE, self.missing))}


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


class ChoiceVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Choice,)

    def choice(
        self,
        cases: dict[str, object] | list[tuple[str, object]],
        otherwise: str | None = None,
        missing: str = FALSE,
        name: str | None = None,
    ) -> Self:
        """Content-based router: the channel of the first case that is true, else `otherwise`. Ends the route."""
        return self.then(lambda: choice(cases, otherwise, missing), name)

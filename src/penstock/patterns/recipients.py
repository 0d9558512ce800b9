"""Recipient list: the message itself says which of the known channels get a copy.

A recipient that is not known, or a message that names none, is a dead letter; a recipient named twice gets one copy.
When a copy fails, the recipients named after it may be stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.budget import ON_EXCEPTION, Budget, check_stop
from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import type_of
from penstock.patterns.drawing import arrows, box, lines
from penstock.patterns.node import PREDICATE, Node, check_channel
from penstock.patterns.verb import Verb
from penstock.schema import STRING, Array, Struct
from penstock.yaml.writing import given, unless, write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item


@dataclass(frozen=True, slots=True)
class Recipients(Node):
    recipients: Expr
    known: tuple[str, ...]
    separator: str = ","
    stop_on_exception: bool = False

    verb: ClassVar[str] = "recipients"
    pattern: ClassVar[str] = "recipient list"
    template: ClassVar[str] = PREDICATE
    icon: ClassVar[str] = box(10, 8, 18, 28) + lines((15, 22, 29), 14, 24) + arrows((15, 29), 32, 53)
    channels: ClassVar[str] = "1:n"
    messages: ClassVar[str] = "1:n"
    ends: ClassVar[bool] = True

    @property
    def stopping(self) -> Budget | None:
        return 0 if self.stop_on_exception else None

    @property
    def may_fail(self) -> bool:
        return True  # a recipient that nobody knows

    def expressions(self) -> tuple[Expr, ...]:
        return (self.recipients,)

    def sends_to(self) -> tuple[str, ...]:
        return self.known

    def output(self, body: Struct) -> Struct:
        if (kind := type_of(self.recipients, body)) not in (STRING, Array(STRING)):
            raise TypeMismatch(f"recipients are text or an array of text, not {kind}")
        return body

    def detail(self) -> str:
        stops = ON_EXCEPTION if self.stop_on_exception else ""
        return f"{to_text(self.recipients)} -> {', '.join(self.known)}{stops}"

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys(("of", "known"), ("separator", "stop_on_exception"))
        return recipients(found["of"].expression(), found["known"].texts(), found.text("separator") or ",",
                          found.is_set("stop_on_exception"))  # fmt: skip

    def write(self) -> object:
        extra = given(separator=unless(",", self.separator), stop_on_exception=self.stop_on_exception or None)
        return {"of": write_expression(self.recipients), "known": list(self.known), **extra}


def recipients(
    of: object, known: list[str] | tuple[str, ...], separator: str = ",", stop_on_exception: bool = False
) -> Recipients:
    """`of`: an array of channel names, or text with a separator between them."""
    if not known or not separator:
        raise BadRoute("a recipient list needs the channels it may send to, and a separator")
    names = tuple(check_channel(name) for name in known)
    return Recipients(expression(of), names, separator, check_stop(stop_on_exception))


class RecipientsVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Recipients,)

    def recipients(
        self, of: object, known: list[str], separator: str = ",", stop_on_exception: bool = False,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Recipient list: the message names its channels, out of the known ones. Ends the route."""
        return self.then(lambda: recipients(of, known, separator, stop_on_exception), name)

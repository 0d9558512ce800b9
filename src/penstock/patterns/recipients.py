"""Recipient list: the message itself says which of the known channels get a copy.

A recipient that is not known, or a message that names none, is a dead letter; a recipient named twice gets one copy.
Those named after one whose copy failed may be stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.budget import ON_EXCEPTION, Budget, check_stop
from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import type_of
from penstock.patterns.node import PREDICATE, Node, check_channel
from penstock.schema import STRING, Array, Struct


@dataclass(frozen=True, slots=True)
class Recipients(Node):
    recipients: Expr
    known: tuple[str, ...]
    separator: str = ","
    stop_on_exception: bool = False

    verb: ClassVar[str] = "recipients"
    pattern: ClassVar[str] = "recipient list"
    template: ClassVar[str] = PREDICATE
    channels: ClassVar[str] = "1:n"
    messages: ClassVar[str] = "1:n"
    ends: ClassVar[bool] = True

    @property
    def stopping(self) -> Budget | None:
        return 0 if self.stop_on_exception else None

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


def recipients(
    of: object, known: list[str] | tuple[str, ...], separator: str = ",", stop_on_exception: bool = False
) -> Recipients:
    """`of`: an array of channel names, or text with a separator between them."""
    if not known or not separator:
        raise BadRoute("a recipient list needs the channels it may send to, and a separator")
    names = tuple(check_channel(name) for name in known)
    return Recipients(expression(of), names, separator, check_stop(stop_on_exception))

"""Header enricher: sets headers, from constants or from the message itself, and removes others.

A header is text. A number or a truth value becomes the text that JSON has for it; a value that is missing leaves the
message without the header.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import NULL, type_of
from penstock.formats.scalars import is_missing
from penstock.patterns.aggregate import COMPLETED_BY, GROUP_SIZE
from penstock.patterns.drawing import box, lines
from penstock.patterns.node import EXPRESSION, Node
from penstock.patterns.redelivery import REDELIVERED
from penstock.patterns.verb import Verb
from penstock.schema import BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, DecimalType, Struct, quote_name
from penstock.values import text_of
from penstock.yaml.writing import given, write_mapping

if TYPE_CHECKING:
    from penstock.yaml.item import Item

_TEXTS = (STRING, INTEGER, DOUBLE, BOOLEAN, DATE, TIMESTAMP)
OWN = (REDELIVERED, COMPLETED_BY, GROUP_SIZE)
"""The headers by which Penstock itself knows how often a message was tried, and what was put together."""


@dataclass(frozen=True, slots=True)
class Headers(Node):
    """All values are computed on the message as it comes to the step: none of them sees what another one sets."""

    values: tuple[tuple[str, Expr], ...]
    removed: tuple[str, ...] = ()

    verb: ClassVar[str] = "headers"
    pattern: ClassVar[str] = "header enricher"
    template: ClassVar[str] = EXPRESSION
    sets_headers: ClassVar[bool] = True
    icon: ClassVar[str] = box(16, 8, 32, 28) + box(16, 8, 32, 9, filled=True) + lines((23, 29), 21, 43)

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(value for _, value in self.values)

    def output(self, body: Struct) -> Struct:
        for name, value in self.values:
            kind = type_of(value, body)
            if kind == NULL:
                raise TypeMismatch(f"header {name!r} is never there", fix=f"write remove=[{name!r}]")
            if kind not in _TEXTS and not isinstance(kind, DecimalType):
                raise TypeMismatch(f"a header is a text, number, time or truth value, but {to_text(value)} is {kind}",
                                   fix="choose a field inside it, or make text of it: join(tags, ',')")  # fmt: skip
        return body

    def detail(self) -> str:
        marks = [", ".join(f"{quote_name(name)} = {to_text(value)}" for name, value in self.values)]
        marks += [f"without {', '.join(map(quote_name, self.removed))}"] if self.removed else []
        return "; ".join(mark for mark in marks if mark)

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys((), ("set", "remove"))
        return headers(found["set"].expressions() if "set" in found else None, found.texts("remove"))

    def write(self) -> object:
        return given(set=write_mapping(self.values) or None, remove=list(self.removed) or None)


def header_text(value: Any) -> str | None:
    """A value as the text of a header, if it is there."""
    if is_missing(value):
        return None
    if isinstance(value, (date, Decimal)):
        return text_of(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def headers(values: Mapping[str, object] | None = None, remove: Sequence[str] = ()) -> Headers:
    listed = tuple((name, expression(value)) for name, value in (values or {}).items())
    removed = (remove,) if isinstance(remove, str) else tuple(remove)
    if not listed and not removed:
        raise BadRoute("headers needs a header to set or to remove", fix='write headers({"name": value}, remove=["x"])')
    names = [*(name for name, _ in listed), *removed]
    for name in names:
        if not isinstance(name, str) or not name:
            raise BadRoute(f"{name!r} is not the name of a header", fix="a header is named by text")
        if name in OWN:
            raise BadRoute(f"the header {name!r} is one that Penstock itself sets and reads",
                           fix="choose another name; to read it is fine")  # fmt: skip
        if names.count(name) > 1:
            raise BadRoute(f"the header {name!r} is named twice", fix="set it or remove it, once")
    return Headers(listed, removed)


class HeadersVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Headers,)

    def headers(
        self, values: Mapping[str, object] | None = None, remove: Sequence[str] = (), name: str | None = None
    ) -> Self:
        """Header enricher: set headers, from constants or from the message itself, and remove others."""
        return self.then(lambda: headers(values, remove), name)

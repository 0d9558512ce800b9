"""Splitter: one message per element of a collection, or per field of the body, with a common head and tail.

Each part knows its parent's id, its index and the number of parts. A message without parts counts as filtered. With an
error budget, the parts after the one whose failure exceeds it are stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.budget import Budget, budget_detail, check_budget
from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import element_of, type_of
from penstock.patterns.drawing import arrow, square
from penstock.patterns.node import EXPRESSION, WHOLE, Node, Paths, read_paths
from penstock.patterns.verb import Verb
from penstock.schema import VARIANT, Struct, resolve
from penstock.yaml.writing import given, write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item, Settings

VALUE = "value"
_ICON = square(9, 15, 14, filled=True) + arrow((27, 22), (39, 22)) + "".join(square(45, y, 8) for y in (5, 18, 31))


@dataclass(frozen=True, slots=True)
class Split(Node):
    """Of a collection: the element is the new body, or the field `into` between head and tail."""

    collection: Expr
    into: str | None = None
    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    error_budget: Budget | None = None

    verb: ClassVar[str] = "split"
    pattern: ClassVar[str] = "splitter"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = _ICON
    messages: ClassVar[str] = "1:n"
    rewrites: ClassVar[bool] = True

    @property
    def stopping(self) -> Budget | None:
        return self.error_budget

    def expressions(self) -> tuple[Expr, ...]:
        return (self.collection,)

    def output(self, body: Struct) -> Struct:
        kind = type_of(self.collection, body)
        element = element_of(kind)
        if kind == VARIANT:
            raise TypeMismatch("a VARIANT cannot be split", fix="declare the collection as ARRAY<...> in the schema")
        if self.into is None:
            return element if isinstance(element, Struct) else Struct(((VALUE, element),))
        named = [(name, resolve(body, (name,))) for name in self.head]
        after = [(name, resolve(body, (name,))) for name in self.tail]
        return Struct((*named, (self.into, element), *after))

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        ends = frozenset((name,) for name in (*self.head, *self.tail))
        return ends | read_paths((self.collection,))

    def detail(self) -> str:
        parts = [*self.head, f"[{to_text(self.collection)}]" + (f" as {self.into}" if self.into else ""), *self.tail]
        return " + ".join(parts) + budget_detail(self.error_budget)

    @classmethod
    def read(cls, item: Item) -> Node:
        if not item.is_mapping or "of" not in item.entries():
            return split(item.expression())
        found = item.keys(("of",), ("into", "head", "tail", "error_budget"))
        return split(found["of"].expression(), found.text("into"), found.texts("head"), found.texts("tail"),
                     _read_budget(found))  # fmt: skip

    def write(self) -> object:
        of, ends = write_expression(self.collection), _write_ends(self.head, self.tail)
        extra = given(into=self.into, **ends, error_budget=self.error_budget)
        return {"of": of, **extra} if extra else of


@dataclass(frozen=True, slots=True)
class SplitFields(Node):
    """Of an object: one message per field that is there, between the head fields and the tail fields."""

    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    error_budget: Budget | None = None

    verb: ClassVar[str] = "split_fields"
    pattern: ClassVar[str] = "splitter"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = _ICON
    messages: ClassVar[str] = "1:n"
    rewrites: ClassVar[bool] = True

    @property
    def stopping(self) -> Budget | None:
        return self.error_budget

    def output(self, body: Struct) -> Struct:
        for name in (*self.head, *self.tail):
            resolve(body, (name,))
        if not self.iterable(body):
            raise BadRoute("head and tail leave no field to split", fix="name fewer fields in head and tail")
        return body

    def iterable(self, body: Struct) -> tuple[str, ...]:
        return tuple(name for name in body.names if name not in (*self.head, *self.tail))

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return WHOLE

    def detail(self) -> str:
        return " + ".join([*self.head, "[each other field]", *self.tail]) + budget_detail(self.error_budget)

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys((), ("head", "tail", "error_budget"))
        return split_fields(found.texts("head"), found.texts("tail"), _read_budget(found))

    def write(self) -> object:
        return given(**_write_ends(self.head, self.tail), error_budget=self.error_budget)


def _read_budget(found: Settings) -> Budget | None:
    if "error_budget" not in found:
        return None
    with found["error_budget"].located():
        return check_budget(found["error_budget"].value())


def _write_ends(head: tuple[str, ...], tail: tuple[str, ...]) -> dict[str, object]:
    return {"head": list(head) or None, "tail": list(tail) or None}


def split(
    collection: object,
    into: str | None = None,
    head: list[str] | tuple[str, ...] = (),
    tail: list[str] | tuple[str, ...] = (),
    error_budget: Budget | None = None,
) -> Split:
    if (head or tail) and not into:
        raise BadRoute("head and tail need a name for the element between them", fix='write into="line"')
    names = [*head, *([into] if into else []), *tail]
    if len(set(names)) != len(names):
        raise BadRoute(f"a part would have a field twice: {names}")
    return Split(expression(collection), into, tuple(head), tuple(tail), check_budget(error_budget))


def split_fields(
    head: list[str] | tuple[str, ...] = (),
    tail: list[str] | tuple[str, ...] = (),
    error_budget: Budget | None = None,
) -> SplitFields:
    if set(head) & set(tail):
        raise BadRoute(f"{sorted(set(head) & set(tail))} cannot be in both head and tail")
    return SplitFields(tuple(head), tuple(tail), check_budget(error_budget))


class SplitVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Split, SplitFields)

    def split(
        self, collection: object, into: str | None = None, head: list[str] | None = None,
        tail: list[str] | None = None, error_budget: Budget | None = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Splitter: a message per element; with `into`, the element is a field between head and tail.

        When more parts of a message fail than `error_budget` allows, a number or a share, those after them are stopped.
        """
        return self.then(lambda: split(collection, into, head or (), tail or (), error_budget), name)

    def split_fields(
        self, head: list[str] | None = None, tail: list[str] | None = None, error_budget: Budget | None = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Splitter: a message per field of the body, each with the head and tail fields."""
        return self.then(lambda: split_fields(head or (), tail or (), error_budget), name)

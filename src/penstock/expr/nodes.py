"""The expression tree. All front ends make it; the reference, the kernel and the printer read it.

A value that is missing and a value that is null are the same: *missing*. Functions of something missing are missing,
and a comparison with something missing is false (or a dead letter, when the step says so).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from penstock.schema import Path, Type

BODY, HEADER, ITEM = "body", "header", "item"
NOW = "now"
META = ("id", "parent", "index", "count")
Value = str | int | float | bool | date | datetime | Decimal | bytes | None
"""A datetime is in UTC, and a Decimal has as many decimals as were written."""
Namespaces = tuple[tuple[str, str], ...]
"""Prefixes and the names that they stand for."""


@dataclass(frozen=True, slots=True)
class Expr:
    """The base of all expression nodes: frozen data, compared by value."""

    def children(self) -> Iterator[Expr]:
        for part in fields(self):
            yield from _expressions(getattr(self, part.name))

    def walk(self) -> Iterator[Expr]:
        yield self
        for child in self.children():
            yield from child.walk()


def _expressions(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from _expressions(inner)


def _exact(value: object) -> object:
    """A key under which 1, 1.0 and true differ, as they do in a message; and so do decimals of different types."""
    if isinstance(value, Decimal):
        return Decimal, str(value)
    return tuple(map(_exact, value)) if isinstance(value, tuple) else (type(value), value)


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """A value of the body, a header, or the item that the nearest `AnyOf` or `Select` looks at."""

    path: Path
    root: str = BODY


@dataclass(frozen=True, slots=True)
class Meta(Expr):
    """What is known about the message beside its body: its `id`; the `parent`, `index` and `count` of a part; NOW."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and _exact(self.value) == _exact(other.value)

    def __hash__(self) -> int:
        return hash(_exact(self.value))


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    """`==`, `!=`, `<`, `<=`, `>` or `>=`; false when either side is missing."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class And(Expr):
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Expr):
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Expr):
    term: Expr


@dataclass(frozen=True, slots=True)
class In(Expr):
    """The value equals one of the options; false when it is missing."""

    value: Expr
    options: tuple[Value, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, In) and (self.value, _exact(self.options)) == (other.value, _exact(other.options))

    def __hash__(self) -> int:
        return hash((self.value, _exact(self.options)))


@dataclass(frozen=True, slots=True)
class Present(Expr):
    """The value is not missing. Inside a VARIANT a null is present, as RFC 9535 has it."""

    value: Expr


@dataclass(frozen=True, slots=True)
class AnyOf(Expr):
    """Some element of the collection satisfies the predicate, which sees it as `Field(..., root=ITEM)`."""

    collection: Expr
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """The elements of the collection that satisfy the predicate, in order.

    Of a VARIANT: the elements of an array or the member values of an object, as RFC 9535 has it.
    """

    collection: Expr
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A built-in function; `expr.functions` lists them."""

    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """The value of the first branch whose condition is true, else `otherwise`."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr = Literal(None)


@dataclass(frozen=True, slots=True)
class Lookup(Expr):
    """A value mapping: the entry for the value, else `otherwise`."""

    value: Expr
    entries: tuple[tuple[Value, Value], ...]
    otherwise: Expr = Literal(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lookup) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> object:
        return self.value, _exact(self.entries), self.otherwise


@dataclass(frozen=True, slots=True)
class Function(Expr):
    """A Python function of the arguments: opaque, and slower than everything above.

    `returns` is None where nobody uses the type (a condition returns a boolean).
    """

    function: Callable[..., Any]
    returns: Type
    arguments: tuple[Expr, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class XPath(Expr):
    """XPath 1.0 on an XML body, read as `kind`: BOOLEAN (a predicate), STRING, DOUBLE or ARRAY<STRING>."""

    path: str
    kind: Type
    namespaces: Namespaces = ()


@dataclass(frozen=True, slots=True)
class JsonPath(Expr):
    """An RFC 9535 condition beyond what the other nodes express; on Spark only inside a VARIANT."""

    query: str
    unsupported: str = field(default="", compare=False)

"""The nodes that look inside a VARIANT, which is any JSON value. `variant.bind` makes them, as does JSONPath."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.expr.nodes import Expr, Field
from penstock.schema import BOOLEAN, VARIANT, Array, Path, Type


@dataclass(frozen=True, slots=True)
class VariantNode(Expr):
    """The base of the nodes with a value; `kind` is its type."""

    kind: ClassVar[Type] = BOOLEAN


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    start: int | None
    stop: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class Every(Expr):
    """All elements of an array, or all member values of an object in the order of their names."""


@dataclass(frozen=True, slots=True)
class Where(Expr):
    """The elements or member values for which the predicate holds; it sees each as the item."""

    predicate: Expr


Selector = str | int | Slice | Every | Where


@dataclass(frozen=True, slots=True)
class Segment(Expr):
    """What each selector finds in a value, or with `descendants` in the value and everything below it."""

    selectors: tuple[Selector, ...]
    descendants: bool = False


@dataclass(frozen=True, slots=True)
class VariantField(VariantNode):
    """One value inside a VARIANT column, or nothing."""

    kind: ClassVar[Type] = VARIANT
    column: Field
    path: Path = ()


@dataclass(frozen=True, slots=True)
class VariantNodes(VariantNode):
    """All values that a path with several ends finds, in order."""

    kind: ClassVar[Type] = Array(VARIANT)
    start: VariantField
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class VariantPresent(VariantNode):
    """There is a value, be it null."""

    value: VariantField | VariantNodes


@dataclass(frozen=True, slots=True)
class VariantCompare(VariantNode):
    """Compare JSON values: numbers and texts have an order, all else is equal or not.

    With `total`, nothing equals nothing, as RFC 9535 has it; otherwise a comparison with nothing is a comparison
    with something missing.
    """

    operator: str
    left: Expr
    right: Expr
    total: bool = False


@dataclass(frozen=True, slots=True)
class VariantCall(VariantNode):
    """A function of RFC 9535: length, count, value, match or search."""

    kind: ClassVar[Type] = VARIANT
    name: str
    arguments: tuple[Expr, ...]

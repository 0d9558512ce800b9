"""Infer from an expression which fields it reads and of which types, because messages of a log have no schema.

A field that is compared with a number is a DOUBLE, one with text a STRING, one that stands for a condition a BOOLEAN;
arguments of functions are what the function takes; what cannot be told is a VARIANT.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from penstock.errors import BadExpression
from penstock.expr import functions, nodes
from penstock.expr.functions import FUNCTIONS
from penstock.expr.nodes import Expr, Field, Literal
from penstock.schema import BINARY, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, VARIANT, Array, Struct, Type

_EXACT = 2**53
"""Integers beyond it are not all doubles."""


@dataclass(slots=True)
class _Place:
    """What is known of one field: its type, or its own fields."""

    name: str
    kind: Type | None = None
    fields: dict[str, _Place] = field(default_factory=dict)
    element: _Place | None = None

    def at(self, part: str | int) -> _Place:
        if isinstance(part, int):
            return self.inside()
        return self.fields.setdefault(part, _Place(f"{self.name}.{part}" if self.name else part))

    def inside(self) -> _Place:
        if self.element is None:
            self.element = _Place(f"an element of {self.name}")
        return self.element

    def learn(self, kind: Type | None) -> None:
        if kind is None or self.kind in (kind, DOUBLE if kind == INTEGER else kind):
            return
        if self.kind is not None and {self.kind, kind} != {INTEGER, DOUBLE}:
            raise BadExpression(f"{self.name} is used as {self.kind} and as {kind}", None,
                                "say what it is with a schema, and convert it with to_string or to_double")  # fmt: skip
        self.kind = DOUBLE if self.kind is not None else kind

    def type(self) -> Type:
        if self.fields and self.element is None and self.kind is None:
            return self.struct()
        if self.element is not None and not self.fields and self.kind is None:
            return Array(self.element.type())
        if self.fields or self.element is not None:
            raise BadExpression(f"{self.name} is used as a value and as something that holds values")
        return self.kind or VARIANT

    def struct(self) -> Struct:
        return Struct(tuple((name, place.type()) for name, place in self.fields.items()))


def fields_of(conditions: Iterable[Expr], values: Iterable[Expr] = ()) -> Struct:
    """The schema that these conditions and values need."""
    body = _Place("")
    for condition in conditions:
        _learn(condition, BOOLEAN, body, None)
    for value in values:
        _learn(value, None, body, None)
    return body.struct()


def _learn(expression: Expr, expected: Type | None, body: _Place, item: _Place | None) -> None:
    def learn(part: Expr, kind: Type | None = None) -> None:
        _learn(part, kind, body, item)

    match expression:
        case Field(path, root):
            place = _place(path, root, body, item)
            if place is not None:
                place.learn(expected)
        case nodes.Compare(_, left, right):
            learn(left, _family(right))
            learn(right, _family(left))
        case nodes.And(terms) | nodes.Or(terms):
            for term in terms:
                learn(term, BOOLEAN)
        case nodes.Not(term):
            learn(term, BOOLEAN)
        case nodes.In(value, options):
            learn(value, next((_family(Literal(option)) for option in options), None))
        case nodes.AnyOf(collection, predicate) | nodes.Select(collection, predicate):
            learn(collection)
            place = _place(collection.path, collection.root, body, item) if isinstance(collection, Field) else None
            _learn(predicate, BOOLEAN, body, None if place is None else place.inside())
        case nodes.Case(branches, otherwise):
            values = (*(value for _, value in branches), otherwise)
            shown = next((kind for value in values if (kind := _family(value))), None)
            for test, value in branches:
                learn(test, BOOLEAN)
                learn(value, expected or shown)
            learn(otherwise, expected or shown)
        case nodes.Lookup(value, entries, otherwise):
            learn(value, next((_family(Literal(key)) for key, _ in entries), None))
            learn(otherwise, expected)
        case nodes.Call(name, arguments):
            for argument, kind in zip(arguments, _taken(name, arguments, expected), strict=True):
                learn(argument, kind)
        case _:
            for child in expression.children():
                learn(child)


def _place(path: tuple[str | int, ...], root: str, body: _Place, item: _Place | None) -> _Place | None:
    if root == nodes.HEADER or (root == nodes.ITEM and item is None):
        return None
    if root == nodes.BODY and not path:
        raise BadExpression("the whole body is no value", None, "name a field of it")
    place = body if root == nodes.BODY else item
    for part in path:
        assert place is not None
        place = place.at(part)
    return place


def _family(value: Expr) -> Type | None:
    """The type of what a field is compared with, if that shows it."""
    match value:
        case Literal(bool()):
            return BOOLEAN
        case Literal(int(number)):
            return DOUBLE if -_EXACT <= number <= _EXACT else INTEGER
        case Literal(float()) | Literal(Decimal()):
            return DOUBLE
        case Literal(datetime()):
            return TIMESTAMP
        case Literal(date()):
            return DATE
        case Literal(bytes()):
            return BINARY
        case Literal(str()) | Field(root=nodes.HEADER):
            return STRING
        case nodes.Meta(nodes.NOW):
            return TIMESTAMP
        case nodes.Meta(name):
            return STRING if name in ("id", "parent") else DOUBLE
        case nodes.Call(name, _) if name in FUNCTIONS:
            return _type(FUNCTIONS[name].result)
    return None


def _taken(name: str, arguments: tuple[Expr, ...], expected: Type | None) -> list[Type | None]:
    signature = FUNCTIONS[name]
    last = len(signature.arguments) - 1
    kinds = [_type(signature.arguments[min(index, last)]) for index in range(len(arguments))]
    if name == "coalesce":
        shown = next((kind for argument in arguments if (kind := _family(argument))), expected)
        kinds = [shown] * len(arguments)
    return kinds


def _type(kind: functions.Kind) -> Type | None:
    if kind == functions.NUMBER:
        return DOUBLE
    if isinstance(kind, (str, tuple)) or (isinstance(kind, Array) and isinstance(kind.element, str)):
        return None
    return DOUBLE if kind == INTEGER else kind

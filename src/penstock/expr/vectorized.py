"""Simple conditions over a whole Arrow batch: what `evaluate` says, for many bodies at once.

Only what has one obvious meaning in both is here: fields, literals, comparisons, their combinations, and whether one
holds for some element of an array. There is no strict form: a comparison with something missing is false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr import nodes
from penstock.expr.nodes import Expr, Field, Literal
from penstock.expr.types import literal_type
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, VARIANT, Array, Struct, Type

_COMPARISONS: dict[str, Callable[[Any, Any], pa.Array]] = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal
}  # fmt: skip
_TEXT_TESTS: dict[str, Callable[[pa.Array, str], pa.Array]] = {
    "contains": pc.match_substring, "starts_with": pc.starts_with, "ends_with": pc.ends_with
}  # fmt: skip
_NUMBERS = (INTEGER, DOUBLE)
_Numbers: TypeAlias = npt.NDArray[Any]


def is_vectorized(condition: Expr, body: Struct, item: Type | None = None) -> bool:
    """Whether `evaluate_batch` takes this condition, which has a type and is bound to the schema.

    `item` is the type of the elements that the condition is about, if it is about elements.
    """

    def known(term: Expr) -> bool:
        return is_vectorized(term, body, item)

    def type_of(value: Expr) -> Type | None:
        return plain_type(value, body, item)

    match condition:
        case Field():
            return type_of(condition) == BOOLEAN
        case nodes.Compare(_, left, right):
            kinds = type_of(left), type_of(right)
            one_family = kinds[0] == kinds[1] in (STRING, BOOLEAN) or all(kind in _NUMBERS for kind in kinds)
            return one_family and (isinstance(left, Field) or isinstance(right, Field))
        case nodes.And(terms) | nodes.Or(terms):
            return bool(terms) and all(map(known, terms))
        case nodes.Not(term):
            return known(term)
        case nodes.In(Field() as value, options):
            kind = type_of(value)
            return kind in (STRING, INTEGER, DOUBLE) and all(literal_type(option) == kind for option in options)
        case nodes.Present(Field() as value):
            return type_of(value) is not None
        case nodes.Call(name, (Field() as value, Literal(str()))) if name in _TEXT_TESTS:
            return type_of(value) == STRING
        case nodes.AnyOf(Field() as collection, predicate) if item is None:
            kind = type_of(collection)
            return isinstance(kind, Array) and is_vectorized(predicate, body, kind.element)
        case nodes.Case(branches, Literal() as otherwise) if item is None:
            values = [otherwise, *(value for _, value in branches)]
            numbers = all(isinstance(value, Literal) and type(value.value) is int for value in values)
            return numbers and all(known(test) and not isinstance(test, nodes.Case) for test, _ in branches)
    return False


def plain_type(value: Expr, body: Struct, item: Type | None = None) -> Type | None:
    """The type of a literal, or of a field that is reached by names of structs alone."""
    if isinstance(value, Literal):
        return literal_type(value.value)
    if not isinstance(value, Field) or not (value.path or value.root == nodes.ITEM):
        return None
    kind: Type | None = {nodes.BODY: body, nodes.ITEM: item}.get(value.root)
    for part in value.path:
        kind = kind.get(part) if isinstance(kind, Struct) and isinstance(part, str) else None
    return None if kind == VARIANT else kind


def evaluate_batch(condition: Expr, bodies: pa.StructArray) -> pa.Array:
    """True or false for every body, or the number of the case that applies; anything missing is false."""
    rows = _Rows(bodies)
    if isinstance(condition, nodes.Case):
        place = _first_true([_truth(test, rows) for test, _ in condition.branches], len(bodies))
        values = [*(value for _, value in condition.branches), condition.otherwise]
        return pa.array(np.array([_number(one) for one in values], np.int64).take(place))
    return _truth(condition, rows)


def _number(value: Expr) -> int:
    assert isinstance(value, Literal)
    assert isinstance(value.value, int)
    return value.value


def _first_true(tests: Sequence[pa.Array], rows: int) -> _Numbers:
    """The place of the first test that a row passes, or their number: how many it failed before.

    This is a sum of bits, and takes an eighth of the time of nested `if_else`.
    """
    failed = np.ones(rows, np.uint8)
    place: _Numbers = np.zeros(rows, np.uint8 if len(tests) < 256 else np.int64)
    for test in tests:
        failed &= _bits(test) ^ 1
        place += failed
    return place


def _bits(flags: pa.Array) -> _Numbers:
    """A byte for each of them: 0 or 1."""
    stored = np.frombuffer(flags.buffers()[1] or b"", np.uint8)
    return np.unpackbits(stored, count=flags.offset + len(flags), bitorder="little")[flags.offset :]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Bodies; or elements of an array in them, and which body each one is of."""

    bodies: pa.StructArray
    items: pa.Array | None = None
    parents: pa.Array | None = None

    def value(self, field: Field) -> pa.Array:
        if field.root == nodes.ITEM:
            return _inside(self.items, field) if field.path else self.items
        found = _inside(self.bodies, field)
        return found if self.parents is None else found.take(self.parents)


def _inside(structs: pa.StructArray, field: Field) -> pa.Array:
    if len(field.path) == 1 and not structs.null_count:
        return structs.field(field.path[0])
    return pc.struct_field(structs, list(field.path))


def _any_of(collection: pa.ListArray, predicate: Expr, bodies: pa.StructArray) -> pa.Array:
    parents = pc.list_parent_indices(collection)
    satisfied = _truth(predicate, _Rows(bodies, collection.flatten(), parents))
    found = np.zeros(len(bodies), np.bool_)
    found[parents.filter(satisfied).to_numpy()] = True
    return pa.array(found)


def _truth(condition: Expr, rows: _Rows) -> pa.Array:
    return _filled(_evaluated(condition, rows))


def _filled(found: pa.Array) -> pa.Array:
    return pc.fill_null(found, False) if isinstance(found, pa.Scalar) or found.null_count else found


def _evaluated(condition: Expr, rows: _Rows) -> pa.Array:
    match condition:
        case Field():
            return rows.value(condition)
        case nodes.Compare(symbol, left, right):
            return _filled(_COMPARISONS[symbol](*_alike(_operand(left, rows), _operand(right, rows))))
        case nodes.And(terms):
            return reduce(pc.and_kleene, [_evaluated(term, rows) for term in terms])
        case nodes.Or(terms):
            return reduce(pc.or_kleene, [_evaluated(term, rows) for term in terms])
        case nodes.Not(term):
            return pc.invert(_truth(term, rows))
        case nodes.In(value, options):
            found = _operand(value, rows)
            # Null is in no set, and in Arrow -0.0 is not in the set of 0.0.
            if pa.types.is_floating(found.type):
                tests = [pc.equal(found, pa.scalar(option, found.type)) for option in options]
                return pc.fill_null(reduce(pc.or_, tests, pc.less(found, found)), False)
            return pc.is_in(found, pa.array(options, found.type))
        case nodes.Present(value):
            return pc.is_valid(_operand(value, rows))
        case nodes.AnyOf(Field() as collection, predicate):
            return _any_of(rows.value(collection), predicate, rows.bodies)
        case nodes.Call(name, (value, Literal(text))):
            return _TEXT_TESTS[name](_operand(value, rows), str(text))
    raise AssertionError(f"{condition!r} is not vectorized")


def _operand(value: Expr, rows: _Rows) -> pa.Array | pa.Scalar:
    if isinstance(value, Literal):
        return _scalar(value.value, type(value.value).__name__)
    assert isinstance(value, Field)
    return rows.value(value)


@lru_cache(maxsize=1024)
def _scalar(value: object, kind: str) -> pa.Scalar:
    """A literal; the kind tells 1 from 1.0 and True."""
    return pa.scalar(value)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Integers meet doubles as doubles, rounded as Python and Spark round them."""
    if pa.types.is_floating(left.type) == pa.types.is_floating(right.type):
        return left, right
    return _floating(left), _floating(right)


def _floating(value: Any) -> Any:
    return value if pa.types.is_floating(value.type) else pc.cast(value, pa.float64(), safe=False)

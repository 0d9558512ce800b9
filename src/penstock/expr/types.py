"""What type an expression has, and whether its parts go together: checked when the plan is built."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

from penstock.errors import BadExpression, TypeMismatch, did_you_mean
from penstock.expr import exact, functions, nodes, patterns, times
from penstock.expr.functions import (
    CHOICES,
    FUNCTIONS,
    LITERAL_INTEGER,
    LITERAL_STRING,
    NUMBER,
    PATTERN,
    PLAIN,
    SHAPE,
    TIME,
    ZONE,
    Kind,
)
from penstock.expr.nodes import Expr
from penstock.expr.results import NULL, common, is_number, result_of
from penstock.expr.variant_nodes import VariantNode
from penstock.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    EMPTY,
    INTEGER,
    STRING,
    TIMESTAMP,
    VARIANT,
    Array,
    DecimalType,
    Map,
    Scalar,
    Struct,
    Type,
    resolve,
)
from penstock.values import MOST_DIGITS

__all__ = ["NULL", "common", "element_of", "literal_type", "require_boolean", "type_of"]
_BEYOND_JSON = (DATE, TIMESTAMP, BINARY)


def type_of(expression: Expr, body: Struct, item: Type = EMPTY) -> Type:
    """The type of an expression over messages whose body has the given schema."""
    match expression:
        case nodes.Field(path, nodes.HEADER):
            if len(path) != 1:
                raise BadExpression("a header is read by its name", fix='write header["name"] or header.name')
            return STRING
        case nodes.Field(path, nodes.ITEM):
            return resolve(item, path, "the item")
        case nodes.Field(path):
            return resolve(body, path)
        case nodes.Meta(name):
            return TIMESTAMP if name == nodes.NOW else STRING if name in ("id", "parent") else INTEGER
        case nodes.Literal(value):
            return literal_type(value)
        case nodes.Compare(operator, left, right):
            kinds = type_of(left, body, item), type_of(right, body, item)
            if operator not in ("==", "!=") or nodes.Literal(None) not in (left, right):
                _comparable(operator, *kinds)
            return BOOLEAN
        case nodes.And(terms) | nodes.Or(terms):
            for term in terms:
                require_boolean(term, body, item)
            return BOOLEAN
        case nodes.Not(term):
            require_boolean(term, body, item)
            return BOOLEAN
        case nodes.In(value, options):
            kind = type_of(value, body, item)
            for option in options:
                _comparable("==", kind, literal_type(option))
            return BOOLEAN
        case nodes.Present(value):
            type_of(value, body, item)
            return BOOLEAN
        case nodes.AnyOf(collection, predicate):
            require_boolean(predicate, body, element_of(type_of(collection, body, item)))
            return BOOLEAN
        case nodes.Select(collection, predicate):
            kind = type_of(collection, body, item)
            require_boolean(predicate, body, element_of(kind))
            return Array(VARIANT) if kind == VARIANT else kind
        case nodes.Case(branches, otherwise):
            for test, _ in branches:
                require_boolean(test, body, item)
            return common([type_of(value, body, item) for _, value in branches] + [type_of(otherwise, body, item)])
        case nodes.Lookup(value, entries, otherwise):
            kind = type_of(value, body, item)
            for key, _ in entries:
                _comparable("==", kind, literal_type(key))
            return common([literal_type(entry) for _, entry in entries] + [type_of(otherwise, body, item)])
        case nodes.Call(name, arguments):
            return _call(name, arguments, [type_of(argument, body, item) for argument in arguments])
        case nodes.Function(_, returns, arguments):
            for argument in arguments:
                type_of(argument, body, item)
            return returns
        case nodes.XPath(_, kind):
            return kind
        case nodes.JsonPath():
            return BOOLEAN
        case VariantNode():
            return expression.kind
    raise AssertionError(f"no type for {expression!r}")


def literal_type(value: nodes.Value) -> Type:
    if value is None:
        return NULL
    if isinstance(value, float) and not math.isfinite(value):
        raise BadExpression(f"{value} is not a number that a message can hold")
    if isinstance(value, int) and functions.integer(value) is None:
        raise BadExpression(f"{value} does not fit in 64 bits", fix="write it as a DOUBLE, with a decimal point")
    if isinstance(value, Decimal):
        return exact.literal_type(value)
    return {bool: BOOLEAN, int: INTEGER, float: DOUBLE, str: STRING, date: DATE, datetime: TIMESTAMP, bytes: BINARY}[
        type(value)
    ]


def element_of(kind: Type) -> Type:
    if kind == VARIANT:
        return VARIANT
    if not isinstance(kind, Array):
        raise TypeMismatch(f"{kind} is not a collection", fix="any and select look into an ARRAY")
    return kind.element


def require_boolean(expression: Expr, body: Struct, item: Type = EMPTY) -> None:
    kind = type_of(expression, body, item)
    if kind not in (BOOLEAN, NULL):
        from penstock.expr.text import to_text

        raise TypeMismatch(f"a condition is true or false, but {to_text(expression)} is {kind}",
                           fix="compare it with something, or use is_present()")  # fmt: skip


def _comparable(operator: str, left: Type, right: Type) -> None:
    if VARIANT in (left, right) and isinstance(left, Scalar) and isinstance(right, Scalar):
        other = right if left == VARIANT else left
        if _is_beyond_json(other):
            raise TypeMismatch(f"{left} {operator} {right} cannot be compared: JSON itself has no {other}",
                               fix="declare the field's type in the schema")  # fmt: skip
        return
    if is_number(left) and is_number(right):
        return
    if left != right or isinstance(left, (Array, Map, Struct)) or left == NULL:
        raise TypeMismatch(f"{left} {operator} {right} cannot be compared", fix=_conversion(left, right))
    if left == BOOLEAN and operator not in ("==", "!="):
        raise TypeMismatch(f"booleans have no order: {left} {operator} {right}", fix="compare them with == or !=")


def _is_beyond_json(kind: Type) -> bool:
    return kind in _BEYOND_JSON or isinstance(kind, DecimalType)


def _conversion(left: Type, right: Type) -> str:
    if NULL in (left, right):
        return "ask is_present() or ~is_present()"
    if {left, right} <= {STRING, INTEGER}:
        return "convert one side with to_integer(...) or to_string(...)"
    if {left, right} <= {STRING, DOUBLE}:
        return "convert the text with to_double(...)"
    other = left if right == STRING else right
    if STRING in (left, right) and isinstance(other, DecimalType):
        return f"convert the text with to_decimal(..., {other.precision}, {other.scale})"
    if {left, right} == {DATE, TIMESTAMP} or (STRING in (left, right) and other in _BEYOND_JSON):
        wanted = DATE if {left, right} == {DATE, TIMESTAMP} else other
        text = f", or write the constant as {wanted} '...'" if STRING in (left, right) else ""
        return f"convert one side with to_{str(wanted).lower()}(...){text}"
    return "compare values of one type"


def _call(name: str, arguments: tuple[Expr, ...], kinds: list[Type]) -> Type:
    signature = FUNCTIONS.get(name)
    if signature is None:
        raise BadExpression(f"there is no function {name!r}", fix=did_you_mean(name, FUNCTIONS))
    most = len(signature.arguments)
    if not (most - signature.optional <= len(arguments) <= most or (signature.repeats and len(arguments) >= most)):
        raise BadExpression(f"{name} takes {most} arguments, not {len(arguments)}")
    literals = [argument.value if isinstance(argument, nodes.Literal) else None for argument in arguments]
    if name == "subtract" and kinds[0] == kinds[1] and kinds[0] in (DATE, TIMESTAMP):
        return result_of(name, kinds, literals)
    for index, (argument, kind) in enumerate(zip(arguments, kinds, strict=True)):
        _argument(name, index, argument, kind, signature.arguments[min(index, most - 1)])
    if problem := times.misuse(name, kinds[0] == DATE, literals):
        raise BadExpression(f"{name}: {problem}")
    if name == "to_date" and len(arguments) == 2 and kinds[0] == STRING:
        raise BadExpression("to_date: a text has no zone", fix="leave it out, or read an instant: to_timestamp(...)")
    if name == "difference" and NULL not in kinds[:2] and kinds[0] != kinds[1]:
        raise TypeMismatch(f"difference of {kinds[0]} and {kinds[1]}", fix="convert one side with to_date(...)")
    if name == "to_string" and kinds[0] == DOUBLE and len(arguments) == 1:
        raise TypeMismatch("to_string of a DOUBLE needs the number of digits", fix="write to_string(value, 2)")
    if name == "to_string" and len(arguments) == 2 and _is_beyond_json(kinds[0]):
        raise TypeMismatch(f"to_string of a {kinds[0]} takes no number of digits", fix="write to_string(value)")
    return result_of(name, kinds, literals)


def _argument(name: str, index: int, argument: Expr, kind: Type, wanted: Kind) -> None:
    def refuse(expected: str) -> TypeMismatch:
        return TypeMismatch(f"argument {index + 1} of {name} is {kind}, expected {expected}")

    if wanted in (SHAPE, ZONE) or wanted in CHOICES:
        _word(name, argument, wanted, refuse)
    elif wanted in (LITERAL_STRING, PATTERN):
        if not (isinstance(argument, nodes.Literal) and isinstance(argument.value, str) and argument.value):
            raise refuse("a literal text that is not empty")
        if wanted == PATTERN and (wrong := patterns.mistake(argument.value)):
            raise BadExpression(f"{name}: {wrong.what}", fix=wrong.fix)
        if wanted == PATTERN and patterns.has_anchor(argument.value):
            raise BadExpression(f"{name}: {argument.value!r} has an anchor, ^ or $",
                                fix="matches covers the whole text; search finds a part")  # fmt: skip
        if name == "extract" and patterns.groups(argument.value) == 0:
            raise BadExpression(f"extract: {argument.value!r} has no group", fix="put ( ) around what to extract")
    elif wanted == LITERAL_INTEGER:
        value = argument.value if isinstance(argument, nodes.Literal) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**31 - 1:
            raise refuse("a literal integer that is not negative")
        if name in ("round", "to_string") and value > 30:
            raise refuse("at most 30 digits")
        if name == "to_decimal" and not index - 2 < value <= MOST_DIGITS:
            raise refuse(f"{2 - index} to {MOST_DIGITS}")
    elif kind == VARIANT:
        raise TypeMismatch(f"{name} needs to know the type of its argument, which is VARIANT",
                           fix="declare the field's type in the schema")  # fmt: skip
    elif kind == NULL or wanted == functions.ANY:
        scalar = isinstance(kind, Scalar)
        if not scalar and name != "coalesce":
            raise refuse("a single value")
    elif wanted == NUMBER:
        if not is_number(kind):
            raise refuse("a number")
    elif wanted == TIME:
        if kind not in (DATE, TIMESTAMP):
            raise refuse("a DATE or a TIMESTAMP")
    elif wanted == PLAIN:
        if not is_number(kind) and kind not in (STRING, BOOLEAN):
            raise refuse("a number, text or a truth value")
    elif isinstance(wanted, tuple):
        if kind not in wanted:
            raise refuse(" or ".join(map(str, wanted)))
    elif isinstance(wanted, Array):
        if not isinstance(kind, Array) or (wanted.element == STRING and kind.element != STRING):
            raise refuse("an array" if wanted.element != STRING else "an array of text")
    elif kind != wanted:
        raise refuse(str(wanted))


def _word(name: str, argument: Expr, wanted: Kind, refuse: Callable[[str], TypeMismatch]) -> None:
    """A word that says how: a unit, a mode, a zone, or the way in which a time is written."""
    value = argument.value if isinstance(argument, nodes.Literal) else None
    if not isinstance(value, str):
        raise refuse(f"a {wanted} in quotes")
    if wanted in CHOICES:
        if value not in CHOICES[wanted]:
            raise BadExpression(f"{name}: there is no {wanted} {value!r}", fix=did_you_mean(value, CHOICES[wanted]))
    elif wrong := (times.zone_mistake if wanted == ZONE else times.shape_mistake)(value):
        raise BadExpression(f"{name}: {wrong}")

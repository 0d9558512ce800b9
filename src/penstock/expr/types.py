"""What type an expression has, and whether its parts go together: checked when the plan is built."""

from __future__ import annotations

import math

from iregexp_check import check as is_portable_pattern

from penstock.errors import BadExpression, TypeMismatch, did_you_mean
from penstock.expr import functions, nodes
from penstock.expr.functions import FUNCTIONS, LITERAL_INTEGER, LITERAL_STRING, NUMBER, PATTERN, Kind
from penstock.expr.nodes import Expr
from penstock.expr.variant_nodes import VariantNode
from penstock.schema import BOOLEAN, DOUBLE, EMPTY, INTEGER, STRING, VARIANT, Array, Map, Scalar, Struct, Type, resolve

NULL = Scalar("NULL")
_NUMBERS = (INTEGER, DOUBLE)


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
            return STRING if name in ("id", "parent") else INTEGER
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
    return {bool: BOOLEAN, int: INTEGER, float: DOUBLE, str: STRING}[type(value)]


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


def common(kinds: list[Type]) -> Type:
    """The one type of several alternatives; integers widen to DOUBLE."""
    known = [kind for kind in kinds if kind != NULL]
    if not known:
        return NULL
    if all(kind in _NUMBERS for kind in known):
        return INTEGER if all(kind == INTEGER for kind in known) else DOUBLE
    if any(kind != known[0] for kind in known):
        raise TypeMismatch(f"the alternatives have different types: {', '.join(sorted(set(map(str, known))))}",
                           fix="convert them with to_string, to_integer or to_double")  # fmt: skip
    return known[0]


def _comparable(operator: str, left: Type, right: Type) -> None:
    if VARIANT in (left, right) and isinstance(left, Scalar) and isinstance(right, Scalar):
        return
    if left in _NUMBERS and right in _NUMBERS:
        return
    if left != right or isinstance(left, (Array, Map, Struct)) or left == NULL:
        raise TypeMismatch(f"{left} {operator} {right} cannot be compared", fix=_conversion(left, right))
    if left == BOOLEAN and operator not in ("==", "!="):
        raise TypeMismatch(f"booleans have no order: {left} {operator} {right}", fix="compare them with == or !=")


def _conversion(left: Type, right: Type) -> str:
    if NULL in (left, right):
        return "ask is_present() or ~is_present()"
    if {left, right} <= {STRING, INTEGER}:
        return "convert one side with to_integer(...) or to_string(...)"
    if {left, right} <= {STRING, DOUBLE}:
        return "convert the text with to_double(...)"
    return "compare values of one type"


def _call(name: str, arguments: tuple[Expr, ...], kinds: list[Type]) -> Type:
    signature = FUNCTIONS.get(name)
    if signature is None:
        raise BadExpression(f"there is no function {name!r}", fix=did_you_mean(name, FUNCTIONS))
    most = len(signature.arguments)
    if not (most - signature.optional <= len(arguments) <= most or (signature.repeats and len(arguments) >= most)):
        raise BadExpression(f"{name} takes {most} arguments, not {len(arguments)}")
    for index, (argument, kind) in enumerate(zip(arguments, kinds, strict=True)):
        _argument(name, index, argument, kind, signature.arguments[min(index, most - 1)])
    if name == "to_string" and kinds[0] == DOUBLE and len(arguments) == 1:
        raise TypeMismatch("to_string of a DOUBLE needs the number of digits", fix="write to_string(value, 2)")
    if signature.result == NUMBER:
        return INTEGER if all(kind in (INTEGER, NULL) for kind in kinds) else DOUBLE
    return common(kinds) if signature.result == functions.ANY else signature.result  # type: ignore[return-value]


def _argument(name: str, index: int, argument: Expr, kind: Type, wanted: Kind) -> None:
    def refuse(expected: str) -> TypeMismatch:
        return TypeMismatch(f"argument {index + 1} of {name} is {kind}, expected {expected}")

    if wanted in (LITERAL_STRING, PATTERN):
        if not (isinstance(argument, nodes.Literal) and isinstance(argument.value, str) and argument.value):
            raise refuse("a literal text that is not empty")
        if wanted == PATTERN and not is_portable_pattern(argument.value):
            fix = r"use RFC 9485 syntax: [0-9] for \d; no look-around, no back-references"
            raise BadExpression(f"{name}: {argument.value!r} is not a portable regular expression", fix=fix)
        if wanted == PATTERN and functions.has_anchor(argument.value):
            raise BadExpression(f"{name}: {argument.value!r} has an anchor, ^ or $",
                                fix="matches covers the whole text; search finds a part")  # fmt: skip
        if name == "extract" and functions.groups(argument.value) == 0:
            raise BadExpression(f"extract: {argument.value!r} has no group", fix="put ( ) around what to extract")
    elif wanted == LITERAL_INTEGER:
        value = argument.value if isinstance(argument, nodes.Literal) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**31 - 1:
            raise refuse("a literal integer that is not negative")
        if name in ("round", "to_string") and value > 30:
            raise refuse("at most 30 digits")
    elif kind == VARIANT:
        raise TypeMismatch(f"{name} needs to know the type of its argument, which is VARIANT",
                           fix="declare the field's type in the schema")  # fmt: skip
    elif kind == NULL or wanted == functions.ANY:
        scalar = isinstance(kind, Scalar)
        if not scalar and name != "coalesce":
            raise refuse("a single value")
    elif wanted in (NUMBER, DOUBLE):
        if kind not in _NUMBERS:
            raise refuse("a number")
    elif isinstance(wanted, Array):
        if not isinstance(kind, Array) or (wanted.element == STRING and kind.element != STRING):
            raise refuse("an array" if wanted.element != STRING else "an array of text")
    elif kind != wanted:
        raise refuse(str(wanted))

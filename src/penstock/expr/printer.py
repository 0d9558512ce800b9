"""An expression as text that `text.parse` reads back to the same tree."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from itertools import chain

from penstock.expr import nodes
from penstock.expr.nodes import Expr, Value
from penstock.schema import BOOLEAN, DOUBLE, STRING, Array, Path, Type
from penstock.values import text_of

RESERVED = frozenset({
    "AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "FALSE", "CASE", "WHEN", "THEN", "ELSE", "END"
})  # fmt: skip
ROOTS = (nodes.BODY, nodes.HEADER, nodes.ITEM)
INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}
XPATH_KINDS: dict[str, Type] = {
    "xpath": BOOLEAN, "xpath_string": STRING, "xpath_number": DOUBLE, "xpath_strings": Array(STRING)
}  # fmt: skip
NAME = re.compile(r"[^\W\d]\w*")

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _PRIMARY = range(1, 8)


def to_text(expression: Expr) -> str:
    """The expression in the language of `text.parse`, on one line unless a literal holds a line break."""
    return _print(expression)[0]


def _print(expression: Expr) -> tuple[str, int]:
    """The text and how strongly it binds."""
    match expression:
        case nodes.Field(path, root):
            return field_text(path, root), _PRIMARY
        case nodes.Literal(value):
            return literal_text(value), _PRIMARY
        case nodes.Compare(operator, left, right):
            symbol = "=" if operator == "==" else operator
            return f"{_inside(left, _SUM)} {symbol} {_inside(right, _SUM)}", _COMPARISON
        case nodes.And(terms):
            return _chain(terms, " AND ", _AND, "TRUE")
        case nodes.Or(terms):
            return _chain(terms, " OR ", _OR, "FALSE")
        case nodes.Not(nodes.Present(value)):
            return f"{_inside(value, _SUM)} IS NULL", _COMPARISON
        case nodes.Not(nodes.In(value, options)):
            return f"{_inside(value, _SUM)} NOT IN ({_listed(options)})", _COMPARISON
        case nodes.Not(term):
            return f"NOT {_inside(term, _PRIMARY)}", _NOT
        case nodes.In(value, options):
            return f"{_inside(value, _SUM)} IN ({_listed(options)})", _COMPARISON
        case nodes.Present(value):
            return f"{_inside(value, _SUM)} IS NOT NULL", _COMPARISON
        case nodes.Call(name, (left, right)) if name in INFIX:
            strength = _SUM if name in ("add", "subtract") else _PRODUCT
            return f"{_inside(left, strength)} {INFIX[name]} {_inside(right, strength + 1)}", strength
        case nodes.Case(branches, otherwise):
            whens = "".join(f" WHEN {to_text(test)} THEN {to_text(value)}" for test, value in branches)
            return f"CASE{whens}{_unless_null(' ELSE ', otherwise)} END", _PRIMARY
    return _print_call(expression), _PRIMARY


def _print_call(expression: Expr) -> str:
    match expression:
        case nodes.Call(name, arguments):
            return _call(name, *map(to_text, arguments))
        case nodes.AnyOf(collection, predicate):
            return _call("any", to_text(collection), to_text(predicate))
        case nodes.Select(collection, predicate):
            return _call("select", to_text(collection), to_text(predicate))
        case nodes.Lookup(value, entries, otherwise):
            pairs = [literal_text(part) for entry in entries for part in entry]
            return f"lookup({', '.join([to_text(value), *pairs])}{_unless_null(', ', otherwise)})"
        case nodes.Function(_, returns, arguments, name):
            return _call("python", literal_text(name), literal_text(str(returns)), *map(to_text, arguments))
        case nodes.XPath(path, kind, namespaces):
            function = next(name for name, known in XPATH_KINDS.items() if known == kind)
            return _call(function, *map(literal_text, (path, *chain.from_iterable(namespaces))))
        case nodes.JsonPath(query):
            return _call("jsonpath", literal_text(query))
        case nodes.Meta(nodes.NOW):
            return _call("now")
        case nodes.Meta(name):
            return _call("meta", literal_text(name))
    # Nodes made by `bind`, which nobody parses back.
    return f"{type(expression).__name__}({', '.join(map(to_text, expression.children()))})"


def _inside(expression: Expr, least: int) -> str:
    text, strength = _print(expression)
    return text if strength >= least else f"({text})"


def _chain(terms: tuple[Expr, ...], word: str, strength: int, empty: str) -> tuple[str, int]:
    if len(terms) < 2:
        return _print(terms[0]) if terms else (empty, _PRIMARY)
    return word.join(_inside(term, strength + 1) for term in terms), strength


def _call(name: str, *arguments: str) -> str:
    return f"{name}({', '.join(arguments)})"


def _listed(options: tuple[Value, ...]) -> str:
    return ", ".join(map(literal_text, options))


def _unless_null(before: str, expression: Expr) -> str:
    return "" if expression == nodes.Literal(None) else before + to_text(expression)


def literal_text(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        quote = '"' if "'" in value and '"' not in value else "'"
        return quote + value.replace(quote, quote * 2) + quote
    if isinstance(value, (int, float)):
        return repr(value)
    return f"{_typed(value)} '{text_of(value)}'"


def _typed(value: Value) -> str:
    """The word that stands before a text which means no text."""
    if isinstance(value, datetime):
        return "TIMESTAMP"
    return "DATE" if isinstance(value, date) else "DECIMAL" if isinstance(value, Decimal) else "BINARY"


def field_text(path: Path, root: str) -> str:
    """`a.b[0]`; the root is written only where the name alone would not say it."""
    bare = root == nodes.BODY and path and isinstance(path[0], str) and path[0] not in ROOTS
    text = _name(str(path[0]), first=True) if bare else root
    for part in path[1:] if bare else path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif root == nodes.HEADER and not NAME.fullmatch(part):
            text += f"[{literal_text(part)}]"
        else:
            text += "." + _name(part)
    return text


def _name(name: str, first: bool = False) -> str:
    plain = NAME.fullmatch(name) and not (first and name.upper() in RESERVED)
    return name if plain else "`" + name.replace("`", "``") + "`"

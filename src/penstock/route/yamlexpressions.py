"""Expressions in YAML, both ways."""

from __future__ import annotations

from penstock.errors import BadFile, did_you_mean
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.expr.printer import XPATH_KINDS, literal_text
from penstock.expr.text import parse, to_text
from penstock.route.yamlends import reference
from penstock.route.yamlnodes import Item


def read_expression(item: Item) -> Expr:
    """SQL-like text, a number, true, false or null, `{jsonpath: ...}` or `{xpath: ..., as: xpath_string}`."""
    if item.is_mapping:
        found = item.entries()
        if "jsonpath" in found:
            found = item.keys(("jsonpath",))
            with found["jsonpath"].located():
                return parse(f"jsonpath({literal_text(found['jsonpath'].text())})")
        found = item.keys(("xpath",), ("as",))
        kind = found["as"].text() if "as" in found else "boolean"
        if kind not in _XPATHS:
            raise BadFile(f"xpath cannot be read as {kind!r}", found["as"].origin, did_you_mean(kind, _XPATHS))
        with found["xpath"].located():
            return parse(f"{_XPATHS[kind]}({literal_text(found['xpath'].text())})")
    value = item.value()
    with item.located():
        return parse(value) if isinstance(value, str) else nodes.Literal(value)


_XPATHS = {"boolean": "xpath", "string": "xpath_string", "number": "xpath_number", "strings": "xpath_strings"}
assert set(_XPATHS.values()) == set(XPATH_KINDS)


def write_expression(expression: Expr, what: str) -> object:
    """Text, or the value itself where YAML says it as well."""
    for part in expression.walk():
        if isinstance(part, nodes.Function):
            reference(part.function, what)
    if isinstance(expression, nodes.Literal) and not isinstance(expression.value, str):
        return expression.value
    return to_text(expression)

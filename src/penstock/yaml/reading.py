"""Read expressions and functions from YAML."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import BadFile, did_you_mean
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.expr.printer import XPATH_KINDS, literal_text
from penstock.expr.text import parse

if TYPE_CHECKING:
    from penstock.yaml.item import Item


def read_expression(item: Item) -> Expr:
    """SQL-like text, a number, true, false or null, `{jsonpath: ...}` or `{xpath: ..., as: string}`."""
    if item.is_mapping:
        found = item.entries()
        if "jsonpath" in found:
            found = item.keys(("jsonpath",))
            with found["jsonpath"].located():
                return parse(f"jsonpath({literal_text(found['jsonpath'].text())})")
        found = item.keys(("xpath",), ("as", "namespaces"))
        kind = found["as"].text() if "as" in found else "boolean"
        if kind not in _XPATHS:
            raise BadFile(f"xpath cannot be read as {kind!r}", found["as"].origin, did_you_mean(kind, _XPATHS))
        declared = found["namespaces"].entries() if "namespaces" in found else {}
        prefixes = [text for prefix, name in declared.items() for text in (prefix, name.text())]
        with found["xpath"].located():
            return parse(f"{_XPATHS[kind]}({', '.join(map(literal_text, (found['xpath'].text(), *prefixes)))})")
    value = item.value()
    with item.located():
        return parse(value) if isinstance(value, str) else nodes.Literal(value)


_XPATHS = {"boolean": "xpath", "string": "xpath_string", "number": "xpath_number", "strings": "xpath_strings"}
assert set(_XPATHS.values()) == set(XPATH_KINDS)


def read_function(item: Item) -> Callable[..., Any]:
    """The function that `module:function` names."""
    name = item.text()
    module, _, qualified = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadFile(f"cannot import {name!r}: {error}", item.origin,
                      "name a function of a module beside this file, as in 'module:function'") from None  # fmt: skip
    if not callable(found):
        raise BadFile(f"{name!r} is not a function", item.origin)
    return found  # type: ignore[no-any-return]

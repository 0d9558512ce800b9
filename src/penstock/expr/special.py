"""Calls in text expressions that are not functions of values: any, select, lookup, jsonpath, meta, now, python."""

from __future__ import annotations

import importlib
from typing import Any

from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.columns import expression, meta
from penstock.expr.nodes import Expr
from penstock.expr.printer import XPATH_KINDS
from penstock.schemas import from_ddl

SPECIAL = ("any", "select", "lookup", "jsonpath", "meta", "now", "python", *XPATH_KINDS)


def special(name: str, arguments: tuple[Expr, ...]) -> Expr:
    if name in ("any", "select"):
        if len(arguments) != 2:
            fix = f"write {name}(lines, item.price > 5)"
            raise BadExpression(f"{name} takes a collection and a condition", fix=fix)
        return (nodes.AnyOf if name == "any" else nodes.Select)(*arguments)
    if name == "lookup":
        return _lookup(arguments)
    if name == "now":
        if arguments:
            raise BadExpression("now takes no arguments", fix="write now()")
        return nodes.Meta(nodes.NOW)
    texts = [part.value for part in arguments if isinstance(part, nodes.Literal) and isinstance(part.value, str)]
    if name == "python":
        return _python(texts, arguments[2:])
    if name in XPATH_KINDS:
        return _xpath(name, texts, len(arguments))
    if len(texts) != 1 or len(arguments) != 1:
        raise BadExpression(f"{name} takes one text in quotes")
    if name == "meta":
        return expression(meta(texts[0]))
    from penstock.expr.jsonpath import predicate

    return predicate(texts[0])


def _xpath(name: str, texts: list[str], arguments: int) -> Expr:
    from penstock.expr.xpath import node

    if len(texts) != arguments or len(texts) % 2 == 0:
        raise BadExpression(f"{name} takes a path in quotes, and then prefixes and what they stand for",
                            fix=f"write {name}('//o:order', 'o', 'urn:orders')")  # fmt: skip
    return node(texts[0], XPATH_KINDS[name], dict(zip(texts[1::2], texts[2::2], strict=True)))


def _lookup(arguments: tuple[Expr, ...]) -> Expr:
    if len(arguments) < 3:
        raise BadExpression("lookup takes a value and pairs", fix="write lookup(status, 'P', 'pending', 'other')")
    value, *rest = arguments
    otherwise = rest.pop() if len(rest) % 2 else nodes.Literal(None)
    parts = [part.value for part in rest if isinstance(part, nodes.Literal)]
    if len(parts) < len(rest):
        fix = "use CASE WHEN ... THEN ... END for computed values"
        raise BadExpression("the pairs of lookup are literals", fix=fix)
    return nodes.Lookup(value, tuple(zip(parts[::2], parts[1::2], strict=True)), otherwise)


def _python(texts: list[str], arguments: tuple[Expr, ...]) -> Expr:
    if len(texts) < 2:
        fix = "write python('module:function', 'STRING', ...)"
        raise BadExpression("python takes a function and its return type", fix=fix)
    name, returns = texts[:2]
    module, _, qualified = name.partition(":")
    try:
        function: Any = importlib.import_module(module)
        for part in qualified.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        fix = "name a function of an importable module, as in 'package.module:function'"
        raise BadExpression(f"cannot import {name!r}: {error}", fix=fix) from None
    return nodes.Function(function, from_ddl(f"value {returns}").fields[0][1], arguments, name)

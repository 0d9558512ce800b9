"""Write settings that differ from the defaults, expressions and functions as YAML.

Errors do not name the step; the caller adds its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.errors import BadFile
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text


def given(**settings: object) -> dict[str, object]:
    """The settings that have a value."""
    return {name: value for name, value in settings.items() if value is not None}


def unless(usual: object, value: object) -> object:
    """The value, or nothing if it is the usual one."""
    return None if value == usual else value


def write_expression(expression: Expr) -> object:
    """Text, or the value itself where YAML says it as well."""
    for part in expression.walk():
        if isinstance(part, nodes.Function):
            write_function(part.function)
    if isinstance(expression, nodes.Literal) and isinstance(expression.value, (bool, int, float, type(None))):
        return expression.value
    return to_text(expression)


def write_mapping(values: Iterable[tuple[str, Expr]]) -> dict[str, object]:
    return {name: write_expression(value) for name, value in values}


def write_function(function: Callable[..., Any]) -> str:
    """`module:function`, which is imported again where the file is read."""
    name = f"{function.__module__}:{function.__qualname__}"
    if "<" in name or function.__module__ == "__main__":
        raise BadFile(f"the function {function.__qualname__} cannot be written as YAML", None,
                      "define it with def at the top of a module that can be imported")  # fmt: skip
    return name

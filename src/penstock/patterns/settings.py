"""The settings in YAML, read and written, that the patterns which remember have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.expr.nodes import Expr
from penstock.patterns.duration import duration_text
from penstock.yaml.writing import write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item

_DURATIONS = ("timeout", "interval", "closed_for", "keep", "delay", "cap")
_NUMBERS = ("size", "window", "first", "keep_last", "attempts")
_FLAGS = ("batch_end", "new_group", "remember_failed")


def read_settings(found: Mapping[str, Item]) -> dict[str, Any]:
    return {name: _read(name, item) for name, item in found.items()}


def _read(name: str, item: Item) -> object:
    if name in ("by", "key"):
        return read_key(item)
    if name == "when":
        return item.expression()
    if name in ("backoff", "jitter"):
        return item.value()
    if name == "errors":
        return item.texts()
    if name in _DURATIONS:
        return item.duration()
    if name in _NUMBERS:
        return item.integer()
    return item.boolean() if name in _FLAGS else item.text()


def read_key(item: Item) -> tuple[Expr, ...]:
    return tuple(one.expression() for one in item.listed()) if item.is_list else (item.expression(),)


def write_settings(given: object, usual: object, names: tuple[str, ...]) -> dict[str, object]:
    """The settings that are not the usual ones."""
    values = {name: getattr(given, name) for name in names if getattr(given, name) != getattr(usual, name)}
    return {name: _write(name, value) for name, value in values.items()}


def _write(name: str, value: Any) -> object:
    if name == "when":
        return write_expression(value)
    if name == "errors":
        return list(value)
    return duration_text(value) if name in _DURATIONS else value


def write_key(key: tuple[Expr, ...]) -> object:
    parts = [write_expression(part) for part in key]
    return parts[0] if len(parts) == 1 else parts or None

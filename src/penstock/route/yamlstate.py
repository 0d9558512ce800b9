"""The patterns that remember in YAML, both ways: `- aggregate: {by: order, strategy: {collect: lines}, size: 3}`."""

from __future__ import annotations

import re
from typing import Any

from penstock.errors import BadFile, did_you_mean
from penstock.expr.nodes import Expr
from penstock.expr.text import parse
from penstock.patterns.aggregate import PARTS, REOPEN, Aggregate, aggregate
from penstock.patterns.duration import duration_text
from penstock.patterns.idempotent import Idempotent, idempotent
from penstock.patterns.key import FLUSH
from penstock.patterns.node import DEAD, Node
from penstock.patterns.redelivery import CURRENT, Redelivery
from penstock.patterns.resequence import Resequence, resequence
from penstock.patterns.strategy import (
    Collect,
    Custom,
    Fold,
    Folding,
    Latest,
    Strategy,
    Union,
    collect,
    combine,
    fold_text,
    fold_tuple,
    latest,
    union,
)
from penstock.route.route import Route
from penstock.route.yamlends import imported, reference
from penstock.route.yamlexpressions import read_expression, write_expression
from penstock.route.yamlnodes import Item

_STRATEGIES = ("collect", "union", "latest", "fold", "combine")
_FOLD = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_DURATIONS = ("timeout", "interval", "closed_for", "keep", "delay", "cap")
_NUMBERS = ("window", "first", "keep_last", "attempts")
_FLAGS = ("batch_end", "new_group", "remember_failed")
_AGGREGATE = ("by", "size", "timeout", "interval", "when", "batch_end", "new_group", "on_timeout", "on_stop", "invalid",
              "closed", "closed_for")  # fmt: skip
_RESEQUENCE = ("by", "size", "window", "first", "timeout", "late", "duplicate", "on_timeout", "on_stop", "invalid",
               "keep")  # fmt: skip
_IDEMPOTENT = ("key", "keep", "keep_last", "duplicates", "remember_failed", "invalid")
_REDELIVERY = ("attempts", "delay", "backoff", "cap", "jitter", "errors", "message")


def read_aggregate(item: Item) -> Node:
    found = item.keys(("strategy",), _AGGREGATE)
    strategy = _strategy(found.pop("strategy"))
    return aggregate(strategy, **_settings(found))


def read_resequence(item: Item) -> Node:
    found = item.keys(("sequence",), _RESEQUENCE)
    sequence = read_expression(found.pop("sequence"))
    return resequence(sequence, **_settings(found))


def read_idempotent(item: Item) -> Node:
    """The key alone, or a mapping; `true` is the message's id."""
    if not item.is_mapping and not item.is_list:
        return idempotent() if item.value() is True else idempotent(read_expression(item))
    return idempotent(**_settings(item.keys((), _IDEMPOTENT))) if item.is_mapping else idempotent(_key(item))


def read_redelivery(route: Route, item: Item) -> Route:
    with item.located():
        return route.on_error(**_settings(item.keys((), _REDELIVERY)))


def _settings(found: dict[str, Item]) -> dict[str, Any]:
    return {name: _setting(name, item) for name, item in found.items()}


def _setting(name: str, item: Item) -> object:
    if name in ("by", "key"):
        return _key(item)
    if name == "when":
        return read_expression(item)
    if name == "size":
        return PARTS if item.value() == PARTS else item.integer()
    if name in ("backoff", "jitter"):
        return item.value()
    if name == "errors":
        return item.texts()
    if name in _DURATIONS:
        return item.duration()
    if name in _NUMBERS:
        return item.integer()
    return item.boolean() if name in _FLAGS else item.text()


def _key(item: Item) -> tuple[Expr, ...]:
    return tuple(map(read_expression, item.listed())) if item.is_list else (read_expression(item),)


def _strategy(item: Item) -> Strategy:
    name = next(iter(item.entries()), "") if item.is_mapping else item.text()
    if name not in _STRATEGIES:
        raise BadFile(f"{item.what}: there is no strategy {name!r}", item.origin, did_you_mean(name, _STRATEGIES))
    if name in ("union", "latest"):
        return union() if name == "union" else latest()
    if not item.is_mapping:
        raise BadFile(f"{item.what}: {name!r} needs settings", item.origin, f"write strategy: {{{name}: ...}}")
    settings = item.keys((name,))[name]
    if name == "fold":
        return fold_tuple({field: _fold(value) for field, value in settings.entries().items()})
    if name == "combine":
        found = settings.keys(("function", "returns"))
        return combine(imported(found["function"]), found["returns"].text())
    if not settings.is_mapping:
        return collect(settings.text())
    found = settings.keys(("into",), ("of", "head", "tail"))
    ends = [found[key].texts() if key in found else [] for key in ("head", "tail")]
    return collect(found["into"].text(), found["of"].text() if "of" in found else None, *ends)


def _fold(item: Item) -> Folding:
    found = _FOLD.fullmatch(item.text())
    if found is None:
        raise item.wrong("a fold", "write it like sum(price) or count()")
    with item.located():
        return Folding(found[1].lower(), parse(found[2]) if found[2].strip() else None)


def write_state(node: Node, what: str) -> object:
    match node:
        case Aggregate():
            made = {"by": _write_key(node.by, what), "strategy": _write_strategy(node.strategy, what)}
            usual = Aggregate((), node.strategy, on_timeout=FLUSH, closed=REOPEN, invalid=DEAD)
            return _given(made) | _written(node, usual, _AGGREGATE[1:], what)
        case Resequence():
            made = {"sequence": write_expression(node.sequence, what), "by": _write_key(node.by, what)}
            return _given(made) | _written(node, Resequence(node.sequence), _RESEQUENCE[1:], what)
    assert isinstance(node, Idempotent)
    key = _write_key(node.key, what)
    rest = _written(node, Idempotent(), _IDEMPOTENT[1:], what)
    if rest or key is True:
        return _given({"key": key}) | rest
    return True if key is None else key


def write_redelivery(policy: Redelivery) -> dict[str, object]:
    usual = Redelivery(cap=max(60.0, policy.delay), message=CURRENT)
    return {"attempts": policy.attempts} | _written(policy, usual, _REDELIVERY[1:], "")


def _written(given: object, usual: object, names: tuple[str, ...], what: str) -> dict[str, object]:
    """The settings that are not the usual ones."""
    values = {name: getattr(given, name) for name in names if getattr(given, name) != getattr(usual, name)}
    return {name: _write_setting(name, value, what) for name, value in values.items()}


def _write_setting(name: str, value: Any, what: str) -> object:
    if name == "when":
        return write_expression(value, what)
    if name == "errors":
        return list(value)
    return duration_text(value) if name in _DURATIONS else value


def _write_key(key: tuple[Expr, ...], what: str) -> object:
    parts = [write_expression(part, what) for part in key]
    return parts[0] if len(parts) == 1 else parts or None


def _write_strategy(strategy: Strategy, what: str) -> object:
    match strategy:
        case Collect(into, None, (), ()):
            return {"collect": into}
        case Collect(into, of, head, tail):
            return {"collect": _given({"into": into, "of": of, "head": list(head) or None, "tail": list(tail) or None})}
        case Union():
            return "union"
        case Latest():
            return "latest"
        case Fold(folds):
            for _, _, value in folds:
                _ = None if value is None else write_expression(value, what)  # a lambda is refused
            return {"fold": {name: fold_text(function, value) for name, function, value in folds}}
    assert isinstance(strategy, Custom)
    return {"combine": {"function": reference(strategy.function, what), "returns": strategy.returns.ddl()}}


def _given(settings: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if value is not None}

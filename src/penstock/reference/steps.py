"""The meaning of every pattern: one message in, a list of effects out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow

from penstock import clock
from penstock.expr import nodes
from penstock.expr.evaluate import Scope, conformed, evaluate
from penstock.expr.nodes import Expr
from penstock.expr.types import element_of, type_of
from penstock.expr.variant import bind
from penstock.failures import (
    FUNCTION_FAILED,
    MISSING_FIELD,
    NOT_IN_TABLE,
    SCRIPT_FAILED,
    UNKNOWN_RECIPIENT,
    said,
)
from penstock.formats.arrow import arrow_type
from penstock.message import Lineage, Message
from penstock.patterns.balance import RANDOM, STICKY, Balance, turn
from penstock.patterns.choice import Choice
from penstock.patterns.content_filter import ContentFilter
from penstock.patterns.enrich import Enrich, EnrichFromTable
from penstock.patterns.filter import Filter
from penstock.patterns.headers import Headers, header_text
from penstock.patterns.join import Join
from penstock.patterns.multicast import Multicast
from penstock.patterns.node import DEAD, Node, missing_reason
from penstock.patterns.recipients import Recipients
from penstock.patterns.script import Script, scripted_rows
from penstock.patterns.split import VALUE, Split, SplitFields
from penstock.patterns.tap import Tap
from penstock.patterns.to import To
from penstock.patterns.translate import Mappings, Translate
from penstock.plan.plan import Stage
from penstock.plan.used import used_expressions
from penstock.reference.effects import Continue, Dead, Effect, Filtered, Send
from penstock.schema import Struct, inside
from penstock.values import text_of


class Failure(Exception):
    """A message that this step cannot handle; becomes a dead letter."""

    def __init__(self, error: str, reason: str) -> None:
        super().__init__(error, reason)
        self.dead = Dead(error, reason)


def apply(stage: Stage, message: Message) -> list[Effect]:
    """What the step does with the message; a failure is a dead letter, never an exception."""
    try:
        call_functions(stage, message)
        assert type(stage.node) in MEANINGS, f"no meaning for {stage.node!r}"
        return MEANINGS[type(stage.node)](stage, stage.node, message)
    except Failure as failure:
        return [failure.dead]


def call_functions(stage: Stage, message: Message) -> None:
    """Python functions run for every message that reaches their step, whatever the other conditions say.

    Those that look at the elements of a collection run for elements, when their answer is needed.
    """
    for expression in used_expressions(stage):
        for part in _about_messages(expression):
            if isinstance(part, nodes.Function):
                value_of(stage, part, message)


def _about_messages(expression: Expr) -> Iterator[Expr]:
    """All parts of an expression but those inside any(...) and select(...)."""
    yield expression
    for child in expression.children():
        if not (isinstance(expression, (nodes.AnyOf, nodes.Select)) and child is expression.predicate):
            yield from _about_messages(child)


def value_of(stage: Stage, expression: Expr, message: Message, strict: bool = False) -> Any:
    bound = bind(expression, stage.scope.schema)
    try:
        return evaluate(bound, Scope(message.fields or {}, message.headers, strict=strict, meta=_meta(message)))
    except Exception as error:
        raise Failure(FUNCTION_FAILED, said(error)) from None


def _meta(message: Message) -> dict[str, Any]:
    part = message.lineage
    about = {"parent": part.parent, "index": part.index, "count": part.count} if part else {}
    return {"id": message.id, nodes.NOW: clock.now(), **about}


def _true(stage: Stage, predicate: Expr, message: Message, missing: str) -> bool:
    value = value_of(stage, predicate, message, strict=missing == DEAD)
    if value is None and missing == DEAD:
        raise Failure(MISSING_FIELD, missing_reason(predicate))
    return bool(value)


def _go_on(stage: Stage, node: Join, message: Message) -> list[Effect]:
    return [Continue(message)]


def _filter(stage: Stage, node: Filter, message: Message) -> list[Effect]:
    if _true(stage, node.predicate, message, node.missing):
        return [Continue(message)]
    return [Send(node.discard, message) if node.discard else Filtered()]


def _choose(stage: Stage, node: Choice, message: Message) -> list[Effect]:
    for channel, test in node.cases:
        if _true(stage, test, message, node.missing):
            return [Send(channel, message)]
    return [Send(node.otherwise, message)]


def _balance(stage: Stage, node: Balance, message: Message) -> list[Effect]:
    if node.strategy == STICKY:
        assert node.key is not None
        key = value_of(stage, node.key, message)
        if key is None:
            raise Failure(MISSING_FIELD, "the sticky key is missing")
        number = turn(text_of(key), node.seed)
    elif node.strategy == RANDOM:
        number = turn(message.id, node.seed)
    else:
        number = message.lineage.index if message.lineage else message.position.offset
    limits = node.limits()
    chosen = next(target for target, limit in zip(node.targets, limits, strict=True) if number % limits[-1] < limit)
    return [Send(chosen, message)]


def _multicast(stage: Stage, node: Multicast, message: Message) -> list[Effect]:
    return [Send(target, message) for target in node.targets]


def _tap(stage: Stage, node: Tap, message: Message) -> list[Effect]:
    return [Send(node.target, message), Continue(message)]


def _send(stage: Stage, node: To, message: Message) -> list[Effect]:
    return [Send(node.channel, message)]


def _to_recipients(stage: Stage, node: Recipients, message: Message) -> list[Effect]:
    value = value_of(stage, node.recipients, message)
    named = value.split(node.separator) if isinstance(value, str) else list(value or ())
    names = [name.strip(" ") for name in named if name is not None and name.strip(" ")]
    if not names:
        raise Failure(UNKNOWN_RECIPIENT, "the message names no recipient")
    return [
        Send(name, message) if name in node.known else Dead(UNKNOWN_RECIPIENT, f"no channel is known as '{name}'")
        for name in dict.fromkeys(names)
    ]


def _translate(stage: Stage, node: Translate, message: Message) -> list[Effect]:
    return [Continue(message.with_fields(_mapped(stage, node.mappings, message, {})))]


def _enrich(stage: Stage, node: Enrich, message: Message) -> list[Effect]:
    return [Continue(message.with_fields(_mapped(stage, node.mappings, message, message.fields or {})))]


def _narrow(stage: Stage, node: ContentFilter, message: Message) -> list[Effect]:
    return [Continue(message.with_fields(narrowed(message.fields or {}, stage.after.wanted)))]


def _mapped(stage: Stage, mappings: Mappings, message: Message, kept: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are kept, with the mapped ones beside or in place of them, at every level."""
    result = dict(kept)
    for target, expression in mappings:
        place, kind = result, inside(stage.after.wanted, target)
        for name in target[:-1]:
            place[name] = dict(place.get(name) or {})
            place = place[name]
        if kind is not None:
            place[target[-1]] = conformed(value_of(stage, expression, message), kind)
    return result


def narrowed(fields: Any, wanted: Struct) -> dict[str, Any]:
    """Only the wanted fields, at every level."""
    result: dict[str, Any] = {}
    for name, kind in wanted.fields:
        value = fields.get(name)
        result[name] = narrowed(value, kind) if isinstance(kind, Struct) and value is not None else value
    return result


def _look_up(stage: Stage, node: EnrichFromTable, message: Message) -> list[Effect]:
    key = value_of(stage, node.on, message)
    row = node.table.rows.get(key) if key is not None else None
    if row is None and node.missing == DEAD:
        shown = "nothing" if key is None else text_of(key)
        raise Failure(NOT_IN_TABLE, f"{node.table} has no row for {shown}")
    found = {name: (row[name] if row is not None else None) for name in node.looked_up().names}
    added = {node.into: found if row is not None else None} if node.into else found
    return [Continue(message.with_fields({**(message.fields or {}), **added}))]


def _set_headers(stage: Stage, node: Headers, message: Message) -> list[Effect]:
    texts = {}
    for name, value in node.values:
        kind = type_of(value, stage.scope.schema)
        texts[name] = header_text(conformed(value_of(stage, value, message), kind))
    gone = {*texts, *node.removed}
    kept = {name: text for name, text in message.headers.items() if name not in gone}
    new = {name: text for name, text in texts.items() if text is not None}
    return [Continue(replace(message, headers=kept | new))]


def _split(stage: Stage, node: Split, message: Message) -> list[Effect]:
    fields = message.fields or {}
    parts = []
    is_object = isinstance(element_of(type_of(node.collection, stage.scope.schema)), Struct)
    for element in value_of(stage, node.collection, message) or ():
        if node.into is None:
            parts.append((element or {}) if is_object else {VALUE: element})
        else:
            ends = {name: fields.get(name) for name in (*node.head, *node.tail)}
            parts.append({**ends, node.into: element})
    return _parts(message, parts)


def _split_fields(stage: Stage, node: SplitFields, message: Message) -> list[Effect]:
    fields = message.fields or {}
    ends = {name: fields.get(name) for name in (*node.head, *node.tail)}
    names = [name for name in node.iterable(stage.scope.schema) if fields.get(name) is not None]
    return _parts(message, [{**ends, name: fields[name]} for name in names])


def _parts(message: Message, bodies: list[dict[str, Any]]) -> list[Effect]:
    if not bodies:
        return [Filtered()]
    return [
        Continue(
            replace(
                message.with_fields(body),
                id=f"{message.id}.{index}",
                lineage=Lineage(message.id, index, len(bodies)),
            )
        )
        for index, body in enumerate(bodies)
    ]


def _scripted(stage: Stage, node: Script, message: Message) -> list[Effect]:
    schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in stage.scope.schema.fields])
    try:
        table = pyarrow.Table.from_pylist([narrowed(message.fields or {}, stage.scope.schema)], schema=schema)
        rows = scripted_rows(node, node.function(table), 1)
    except Exception as error:
        raise Failure(SCRIPT_FAILED, said(error)) from None
    bodies = [body for _, body in rows]
    if len(bodies) == 1:
        return [Continue(message.with_fields(bodies[0]))]
    return _parts(message, bodies)


Meaning = Callable[[Stage, Any, Message], list[Effect]]
MEANINGS: dict[type[Node], Meaning] = {
    Join: _go_on, Filter: _filter, Choice: _choose, Balance: _balance, Multicast: _multicast, Tap: _tap, To: _send,
    Recipients: _to_recipients, Translate: _translate, ContentFilter: _narrow, Enrich: _enrich,
    EnrichFromTable: _look_up, Headers: _set_headers, Split: _split, SplitFields: _split_fields, Script: _scripted,
}  # fmt: skip
"""What each pattern does with one message."""

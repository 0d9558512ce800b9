"""The meaning of every pattern: one message in, a list of effects out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow

from penstock.expr import nodes
from penstock.expr.evaluate import Scope, conformed, evaluate
from penstock.expr.nodes import Expr
from penstock.expr.variant import bind
from penstock.formats.arrow import arrow_type
from penstock.message import Lineage, Message
from penstock.patterns.balance import RANDOM, STICKY, Balance, turn
from penstock.patterns.choice import Choice
from penstock.patterns.content_filter import ContentFilter
from penstock.patterns.enrich import Enrich, EnrichFromTable
from penstock.patterns.filter import Filter
from penstock.patterns.join import Join
from penstock.patterns.multicast import Multicast
from penstock.patterns.node import DEAD, read_paths
from penstock.patterns.recipients import Recipients
from penstock.patterns.script import ROW, Script
from penstock.patterns.split import VALUE, Split, SplitFields
from penstock.patterns.tap import Tap
from penstock.patterns.to import To
from penstock.patterns.translate import Mappings, Translate
from penstock.plan.plan import Stage
from penstock.reference.effects import Continue, Dead, Effect, Filtered, Send
from penstock.schema import Struct, Type

MISSING_FIELD, FUNCTION_FAILED, SCRIPT_FAILED = "MissingField", "FunctionFailed", "ScriptFailed"
UNKNOWN_RECIPIENT, NOT_IN_TABLE = "UnknownRecipient", "NotInTable"


class Failure(Exception):
    """A message that this step cannot handle; becomes a dead letter."""

    def __init__(self, error: str, reason: str) -> None:
        super().__init__(error, reason)
        self.dead = Dead(error, reason)


def apply(stage: Stage, message: Message) -> list[Effect]:
    """What the step does with the message; a failure is a dead letter, never an exception."""
    try:
        call_functions(stage, message)
        return _apply(stage, message)
    except Failure as failure:
        return [failure.dead]


def used_expressions(stage: Stage) -> tuple[Expr, ...]:
    """The expressions of a step whose values somebody needs."""
    if isinstance(stage.node, (Translate, Enrich)):
        return tuple(value for target, value in stage.node.mappings if _at(stage.after.wanted, target) is not None)
    return stage.node.expressions()


def call_functions(stage: Stage, message: Message) -> None:
    """Python functions run for every message that reaches their step, whatever the other conditions say."""
    for expression in used_expressions(stage):
        for part in expression.walk():
            if isinstance(part, nodes.Function):
                value_of(stage, part, message)


def _apply(stage: Stage, message: Message) -> list[Effect]:
    match stage.node:
        case Join():
            return [Continue(message)]
        case Filter(predicate, discard, missing):
            if _true(stage, predicate, message, missing):
                return [Continue(message)]
            return [Send(discard, message) if discard else Filtered()]
        case Choice(cases, otherwise, missing):
            for channel, test in cases:
                if _true(stage, test, message, missing):
                    return [Send(channel, message)]
            return [Send(otherwise, message)]
        case Balance():
            return [Send(_balanced(stage, stage.node, message), message)]
        case Multicast(targets):
            return [Send(target, message) for target in targets]
        case Recipients():
            return _to_recipients(stage, stage.node, message)
        case Tap(target):
            return [Send(target, message), Continue(message)]
        case To(channel):
            return [Send(channel, message)]
        case Translate(mappings):
            return [Continue(message.with_fields(_mapped(stage, mappings, message)))]
        case ContentFilter():
            return [Continue(message.with_fields(narrowed(message.fields or {}, stage.after.wanted)))]
        case Enrich(mappings):
            added = _mapped(stage, mappings, message)
            return [Continue(message.with_fields({**(message.fields or {}), **added}))]
        case EnrichFromTable():
            return [Continue(_looked_up(stage, stage.node, message))]
        case Split():
            return _parts(message, _elements(stage, stage.node, message))
        case SplitFields():
            return _parts(message, _each_field(stage, stage.node, message))
        case Script():
            return _scripted(stage, stage.node, message)
    raise AssertionError(f"no meaning for {stage.node!r}")


def value_of(stage: Stage, expression: Expr, message: Message, strict: bool = False) -> Any:
    bound = bind(expression, stage.scope.schema)
    try:
        return evaluate(bound, Scope(message.fields or {}, message.headers, strict=strict, meta=_meta(message)))
    except Exception as error:
        raise Failure(FUNCTION_FAILED, f"{type(error).__name__}: {error}") from None


def _meta(message: Message) -> dict[str, Any]:
    part = message.lineage
    about = {"parent": part.parent, "index": part.index, "count": part.count} if part else {}
    return {"id": message.id, **about}


def missing_reason(predicate: Expr) -> str:
    """Why a condition has no answer; which of its fields is missing may differ from message to message."""
    paths = sorted(".".join(map(str, path)) for path in read_paths((predicate,)))
    return f"the condition reads {', '.join(paths) or 'headers'}, and a value is missing"


def _true(stage: Stage, predicate: Expr, message: Message, missing: str) -> bool:
    value = value_of(stage, predicate, message, strict=missing == DEAD)
    if value is None and missing == DEAD:
        raise Failure(MISSING_FIELD, missing_reason(predicate))
    return bool(value)


def _balanced(stage: Stage, node: Balance, message: Message) -> str:
    if node.strategy == STICKY:
        assert node.key is not None
        key = value_of(stage, node.key, message)
        if key is None:
            raise Failure(MISSING_FIELD, "the sticky key is missing")
        number = turn(_text(key), node.seed)
    elif node.strategy == RANDOM:
        number = turn(message.id, node.seed)
    else:
        number = message.lineage.index if message.lineage else message.position.offset
    limits = node.limits()
    return next(target for target, limit in zip(node.targets, limits, strict=True) if number % limits[-1] < limit)


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


def _mapped(stage: Stage, mappings: Mappings, message: Message) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for target, expression in mappings:
        kind = _at(stage.after.wanted, target)
        if kind is None:
            continue
        value = conformed(value_of(stage, expression, message), kind)
        place = result
        for name in target[:-1]:
            place = place.setdefault(name, {})
        place[target[-1]] = value
    return result


def _at(kind: Type | None, path: tuple[str, ...]) -> Type | None:
    for name in path:
        kind = kind.get(name) if isinstance(kind, Struct) else None
    return kind


def narrowed(fields: Any, wanted: Struct) -> dict[str, Any]:
    """Only the wanted fields, at every level."""
    result: dict[str, Any] = {}
    for name, kind in wanted.fields:
        value = fields.get(name)
        result[name] = narrowed(value, kind) if isinstance(kind, Struct) and value is not None else value
    return result


def _looked_up(stage: Stage, node: EnrichFromTable, message: Message) -> Message:
    key = value_of(stage, node.on, message)
    row = node.table.rows.get(key) if key is not None else None
    if row is None and node.missing == DEAD:
        shown = "nothing" if key is None else _text(key)
        raise Failure(NOT_IN_TABLE, f"{node.table} has no row for {shown}")
    found = {name: (row[name] if row is not None else None) for name in node.looked_up().names}
    added = {node.into: found if row is not None else None} if node.into else found
    return message.with_fields({**(message.fields or {}), **added})


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _elements(stage: Stage, node: Split, message: Message) -> list[dict[str, Any]]:
    fields = message.fields or {}
    parts = []
    for element in value_of(stage, node.collection, message) or ():
        if node.into is None:
            whole = VALUE not in stage.after.schema.names or isinstance(element, dict)
            parts.append((element or {}) if whole else {VALUE: element})
        else:
            ends = {name: fields.get(name) for name in (*node.head, *node.tail)}
            parts.append({**ends, node.into: element})
    return parts


def _each_field(stage: Stage, node: SplitFields, message: Message) -> list[dict[str, Any]]:
    fields = message.fields or {}
    ends = {name: fields.get(name) for name in (*node.head, *node.tail)}
    names = [name for name in node.iterable(stage.scope.schema) if fields.get(name) is not None]
    return [{**ends, name: fields[name]} for name in names]


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
        raise Failure(SCRIPT_FAILED, f"{type(error).__name__}: {error}") from None
    bodies = [body for _, body in rows]
    if len(bodies) == 1:
        return [Continue(message.with_fields(bodies[0]))]
    return _parts(message, bodies)


def scripted_rows(node: Script, result: pyarrow.Table, count: int) -> list[tuple[int, dict[str, Any]]]:
    """A script's result as (incoming row, body) pairs; raises ValueError when it is not what was declared."""
    wanted = pyarrow.schema([(name, arrow_type(kind)) for name, kind in node.returns.fields])
    rows = result[ROW].to_pylist() if ROW in result.column_names else list(range(result.num_rows))
    if ROW not in result.column_names and result.num_rows != count:
        raise ValueError(f"{count} rows went in and {result.num_rows} came out without a {ROW!r} column")
    if any(not isinstance(row, int) or not 0 <= row < count for row in rows):
        raise ValueError(f"the {ROW!r} column names a row that did not go in")
    return list(zip(rows, result.select(wanted.names).cast(wanted).to_pylist(), strict=True))

"""Run messages through a plan, one at a time, and say what happened to each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.endpoints.memory import as_messages
from penstock.errors import BadRoute, UnknownChannel, did_you_mean
from penstock.expr import jsonpath, nodes
from penstock.expr.evaluate import expression_key
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.formats import Json, Malformed, Xml
from penstock.message import DeadLetter, Message
from penstock.plan.demand import converts
from penstock.plan.plan import Entry, Outlet, Plan, PlannedRoute, Scope
from penstock.reference.effects import Continue, Dead, Effect, Filtered, Send
from penstock.reference.steps import Failure, apply, narrowed, value_of
from penstock.summary import Summary

DECODE = "decode"


@dataclass
class Outcome:
    """Where every message ended: received + copied = delivered + filtered + dead."""

    received: int = 0
    copied: int = 0
    channels: dict[str, list[Message]] = field(default_factory=dict)
    filtered: Counter[str] = field(default_factory=Counter)
    dead: list[DeadLetter] = field(default_factory=list)

    def summary(self, app: str) -> Summary:
        delivered = {channel: len(messages) for channel, messages in self.channels.items()}
        return Summary(app, 1, self.received, self.copied, delivered, self.filtered, len(self.dead))


@dataclass(frozen=True)
class TraceStep:
    """One step of one message: what it asked, what it got, what became of it."""

    route: str
    step: str
    pattern: str
    values: tuple[tuple[str, Any], ...]
    outcome: str


@dataclass(frozen=True)
class Trace:
    steps: tuple[TraceStep, ...]
    outcome: Outcome

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            lines.append(f"{step.route}.{step.step}  ({step.pattern})  {step.outcome}")
            lines.extend(
                f"    {text} = {json.dumps(value, ensure_ascii=False, default=str)}" for text, value in step.values
            )
        return "\n".join(lines)


def run(plan: Plan, messages: Mapping[str, Iterable[object]] | Iterable[object]) -> Outcome:
    """All messages through the plan. With several sources, `messages` maps the name of a source's route to a list."""
    given = messages if isinstance(messages, Mapping) else {_only_entry(plan).route: messages}
    outcome = Outcome(channels={outlet.channel: [] for outlet in plan.outlets})
    runner = _Runner(plan, outcome, None)
    for route, values in given.items():
        entry = _entry(plan, route)
        for message in as_messages(values, entry.route):
            runner.enter(entry, message)
    return outcome


def trace(plan: Plan, message: object, route: str | None = None) -> Trace:
    """The path of one message."""
    entry = _entry(plan, route) if route else plan.entries[0]
    steps: list[TraceStep] = []
    outcome = Outcome(channels={outlet.channel: [] for outlet in plan.outlets})
    _Runner(plan, outcome, steps).enter(entry, as_messages([message], entry.route)[0])
    return Trace(tuple(steps), outcome)


def _only_entry(plan: Plan) -> Entry:
    if len(plan.entries) != 1:
        names = ", ".join(entry.route for entry in plan.entries)
        raise BadRoute(f"app {plan.name!r} has {len(plan.entries)} sources: {names}",
                       fix="give the messages of each as {route: [...]}")  # fmt: skip
    return plan.entries[0]


def _entry(plan: Plan, route: str) -> Entry:
    for entry in plan.entries:
        if entry.route == route:
            return entry
    raise UnknownChannel(
        f"no route named {route!r} has a source", fix=did_you_mean(route, (e.route for e in plan.entries))
    )


@dataclass
class _Runner:
    plan: Plan
    outcome: Outcome
    steps: list[TraceStep] | None

    def enter(self, entry: Entry, message: Message) -> None:
        self.outcome.received += 1
        route = next(route for route in self.plan.routes if route.name == entry.route)
        fields = decode(entry, message.raw)
        if isinstance(fields, Malformed):
            self._bury(message, entry.route, DECODE, Dead(fields.error, fields.reason))
            self._note(entry.route, DECODE, entry.format.name, (), f"dead letter: {fields.error}: {fields.reason}")
        else:
            self._walk(route, 0, replace(message, fields=fields))

    def _walk(self, route: PlannedRoute, index: int, message: Message) -> None:
        stage = route.stages[index]
        effects = apply(stage, message)
        self.outcome.copied += len(effects) - 1
        if self.steps is not None:
            self._note(route.name, stage.node.name, stage.node.pattern, _values(stage, message), _said(effects))
        for effect in effects:
            match effect:
                case Continue(continued):
                    self._walk(route, index + 1, continued)
                case Send(channel, sent):
                    self._send(channel, sent, stage.after if stage.node.rewrites else stage.scope)
                case Filtered():
                    self.outcome.filtered[stage.title] += 1
                case Dead():
                    self._bury(message, route.name, stage.node.name, effect)

    def _send(self, channel: str, message: Message, scope: Scope) -> None:
        reader = self.plan.readers.get(channel)
        if reader is None:
            outlet = next(outlet for outlet in self.plan.outlets if outlet.channel == channel)
            self.outcome.channels[channel].append(self._encoded(outlet, message, scope))
            return
        route = next(route for route in self.plan.routes if route.name == reader)
        if scope.number != route.scope.number:
            fields = narrowed(message.fields or {}, route.scope.wanted)
            message = replace(message, fields=fields, rewritten=not route.scope.raw)
        self._walk(route, 0, message)

    def _encoded(self, outlet: Outlet, message: Message, scope: Scope) -> Message:
        if not converts(outlet.sink, scope):
            return message
        asked = getattr(outlet.sink, "format", None)
        fields = narrowed(message.fields or {}, scope.wanted)
        return replace(message, raw=(asked or Json(scope.schema)).encode(fields), fields=fields)

    def _bury(self, message: Message, route: str, step: str, dead: Dead) -> None:
        self.outcome.dead.append(DeadLetter(message, route, step, dead.error, dead.reason))

    def _note(self, route: str, step: str, pattern: str, values: tuple[tuple[str, Any], ...], outcome: str) -> None:
        if self.steps is not None:
            self.steps.append(TraceStep(route, step, pattern, values, outcome))


def decode(entry: Entry, raw: bytes) -> dict[str, Any] | Malformed:
    """The fields that the plan reads, and the values of the paths that only the decoder can follow."""
    xpaths = tuple(path for path in entry.paths if isinstance(path, nodes.XPath))
    queries = tuple(path for path in entry.paths if isinstance(path, nodes.JsonPath))
    if not entry.parsed.fields and not entry.paths:
        return {}
    if isinstance(entry.format, Xml):
        fields = entry.format.decode(raw, entry.parsed, xpaths=tuple((path.path, path.kind) for path in xpaths))
        if isinstance(fields, Malformed):
            return fields
        for index, path in enumerate(xpaths):
            fields[expression_key(path)] = fields.pop(f"xpath_{index}")
        return fields
    fields = entry.format.decode(raw, entry.parsed)
    if isinstance(fields, dict):
        for query in queries:
            fields[expression_key(query)] = jsonpath.holds(query.query, json.loads(raw))
    return fields


def _values(stage: Any, message: Message) -> tuple[tuple[str, Any], ...]:
    return tuple((to_text(expression), _value(stage, expression, message)) for expression in stage.node.expressions())


def _value(stage: Any, expression: Expr, message: Message) -> Any:
    try:
        return value_of(stage, expression, message)
    except Failure as failure:
        return failure.dead.reason


def _said(effects: list[Effect]) -> str:
    words = []
    for effect in effects:
        match effect:
            case Continue(message):
                part = message.lineage
                words.append(f"on as part {part.index + 1} of {part.count}" if part and len(effects) > 1 else "on")
            case Send(channel):
                words.append(f"-> {channel}")
            case Filtered():
                words.append("filtered")
            case Dead(error, reason):
                words.append(f"dead letter: {error}: {reason}")
    return ", ".join(words)

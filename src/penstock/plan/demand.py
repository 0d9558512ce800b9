"""Which fields are needed where: from the sinks back to the sources, so that only those are ever parsed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from penstock.endpoints.base import Sink
from penstock.endpoints.files import Files
from penstock.endpoints.kafka import KafkaTopic
from penstock.endpoints.log import Log
from penstock.endpoints.memory import Memory
from penstock.endpoints.simple import Void
from penstock.errors import BadExpression, BadSchema
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.expr.variant import bind
from penstock.formats import Csv
from penstock.formats.written import Written
from penstock.patterns.node import NOTHING, WHOLE, Node, Paths, read_paths, top_level
from penstock.plan.answers import Question, decodes, part, question, together, worth_answering
from penstock.plan.plan import Answer, Entry, Inflow, Outlet, Plan, Scope, Stage
from penstock.plan.written import written_stage
from penstock.schema import Struct


def checked(node: Node, scope: Scope) -> Struct:
    """The schema after a step; paths that only a source's decoder can follow need the source's own body."""
    schema = node.output(scope.schema)
    for expression in node.expressions():
        for inner in bind(expression, scope.schema).walk():
            if isinstance(inner, nodes.XPath):
                _check_path(scope, "XPath", "xml")
            elif isinstance(inner, nodes.JsonPath):
                _check_path(scope, "JSONPath", "json")
    return schema


def _check_path(scope: Scope, language: str, name: str) -> None:
    if scope.format is not None and scope.format.name != name:
        raise BadExpression(
            f"{language} looks into {name.upper()}, and the bodies here are {scope.format.name.upper()}",
            fix="use the fields of the schema: body.name",
        )
    if not scope.raw or scope.joined:
        raise BadExpression(
            "a path into the original document cannot be followed after the body was rewritten or joined",
            fix="read it before that step, or use body fields",
        )


def fill(plan: Plan, answered: bool = True) -> Plan:
    """The plan with every scope's wanted part, and what the decoders answer and write."""
    wanted: dict[int, Paths] = defaultdict(lambda: NOTHING)
    paths: dict[int, dict[Expr, None]] = defaultdict(dict)
    # A message that is tried again comes without its answers: where that may be, the fields go on.
    asking = [entry for entry in plan.entries if answered and decodes(entry) and not plan.remembers]
    questions: dict[int, list[Question]] = {entry.scope.number: [] for entry in asking}
    written = {entry.scope.number: made for entry in asking if (made := written_stage(plan, entry)) is not None}
    titles = _titles(written)
    for outlet in plan.outlets:
        for inflow in outlet.inflows:
            if converts(outlet.sink, inflow.scope):
                wanted[inflow.scope.number] |= WHOLE
    for route in reversed(plan.routes):
        for stage in reversed(route.stages):
            asked = question(stage) if stage.scope.number in questions else None
            if asked is not None:
                questions[stage.scope.number].append(asked)
                continue
            if stage.title in titles:
                continue
            wanted[stage.scope.number] |= (
                stage.node.requires(wanted[stage.after.number], stage.scope.schema)
                if stage.node.rewrites
                else read_paths(stage.node.expressions())
            )
            for expression in stage.node.expressions():
                found = (path for path in expression.walk() if isinstance(path, (nodes.XPath, nodes.JsonPath)))
                paths[stage.scope.number].update(dict.fromkeys(found))
        if route.merges:
            for inflow in route.inflows:
                wanted[inflow.scope.number] |= top_level(wanted[route.scope.number], inflow.scope.schema.names)
    return _filled(plan, wanted, paths, questions, written)


def _filled(
    plan: Plan, wanted: dict[int, Paths], paths: dict[int, dict[Expr, None]], questions: dict[int, list[Question]],
    written: dict[int, tuple[Stage, Written]],
) -> Plan:  # fmt: skip
    entries: list[Entry] = []
    steps = [stage.title for stage in plan.stages()]
    for entry in plan.entries:
        number, schema = entry.scope.number, entry.scope.schema
        asked = questions.get(number, [])
        answered = worth_answering(asked, wanted[number], schema)
        wanted[number] |= together(each for each in asked if each not in answered)
        made = written[number][1] if number in written else None
        parsed = part(schema, wanted[number] | together(answered) | (made.paths() if made else NOTHING))
        answers = sorted((steps.index(each.step), each.step, each.expression) for each in answered)
        entries.append(replace(entry, paths=tuple(paths[number]), parsed=parsed, written=made,
                               answers=tuple(Answer(*answer) for answer in answers)))  # fmt: skip
    numbers = {answer.step: answer.number for entry in entries for answer in entry.answers}
    titles = _titles(written)

    def done(scope: Scope) -> Scope:
        return replace(scope, wanted=part(scope.schema, wanted[scope.number]))

    def placed(stage: Stage) -> Stage:
        return replace(stage, scope=done(stage.scope), after=done(stage.after), answer=numbers.get(stage.title),
                       written=stage.title in titles)  # fmt: skip

    return replace(
        plan,
        entries=tuple(replace(entry, scope=done(entry.scope)) for entry in entries),
        routes=tuple(
            replace(
                route,
                scope=done(route.scope),
                inflows=_done(route.inflows, done),
                stages=tuple(map(placed, route.stages)),
            )
            for route in plan.routes
        ),
        outlets=tuple(replace(outlet, inflows=_done(outlet.inflows, done)) for outlet in plan.outlets),
    )


def _titles(written: Mapping[int, tuple[Stage, Written]]) -> set[str]:
    return {stage.title for stage, _ in written.values()}


def _done(inflows: tuple[Inflow, ...], done) -> tuple[Inflow, ...]:  # type: ignore[no-untyped-def]
    return tuple(replace(inflow, scope=done(inflow.scope)) for inflow in inflows)


def converts(sink: Sink, scope: Scope) -> bool:
    """The sink gets the body written anew: it was rewritten, or the sink wants columns or another format."""
    if scope.format is None or sink.columns:
        return True
    asked = sink.format if isinstance(sink, (Files, KafkaTopic, Log, Memory)) else None
    if isinstance(asked, Csv) and asked != scope.format:
        return True
    return asked is not None and asked.name != scope.format.name


def check_sink(outlet: Outlet) -> None:
    """A sink's own schema has room for every field that arrives."""
    asked = outlet.sink.format if isinstance(outlet.sink, (Files, KafkaTopic, Log, Memory)) else None
    arriving = {inflow.scope.format.name if inflow.scope.format else "json" for inflow in outlet.inflows}
    if asked is None and len(arriving) > 1 and not outlet.sink.columns and not isinstance(outlet.sink, Void):
        raise BadSchema(
            f"bodies of different formats arrive in channel {outlet.channel!r}: {', '.join(sorted(arriving))}",
            fix="give its sink a format, or send them to different channels",
        )
    if not isinstance(asked, Csv):
        return
    for inflow in outlet.inflows:
        lost = [name for name in inflow.scope.schema.names if name not in asked.schema.names]
        if lost and converts(outlet.sink, inflow.scope):
            raise BadSchema(
                f"channel {outlet.channel!r} writes CSV without a column for {', '.join(lost)}",
                fix="add it to the sink's schema, or drop the field before",
            )

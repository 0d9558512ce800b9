"""Find which fields are needed at every step, from the sinks back to the sources, so that no others are decoded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.endpoints.base import Sink
from penstock.endpoints.files import Files
from penstock.endpoints.kafka import KafkaTopic
from penstock.endpoints.log import Log
from penstock.endpoints.memory import Memory
from penstock.endpoints.simple import Void
from penstock.errors import BadEndpoint, BadExpression, BadSchema, Origin
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.expr.variant import bind
from penstock.formats import Csv, Format
from penstock.patterns.node import NOTHING, WHOLE, Node, Paths, read_paths, top_level
from penstock.plan.plan import Inflow, Outlet, Plan, Scope
from penstock.schema import Struct, project


def checked(node: Node, scope: Scope) -> Struct:
    """The schema after a step; raises where an XPath or JSONPath looks into a body that is not the original one."""
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


def fill(plan: Plan) -> Plan:
    """The plan with the fields that are wanted of every scope, and the XPaths and JSONPaths that decoders follow."""
    wanted: dict[int, Paths] = defaultdict(lambda: NOTHING)
    paths: dict[int, dict[Expr, None]] = defaultdict(dict)
    for outlet in plan.outlets:
        for inflow in outlet.inflows:
            if converts(outlet.sink, inflow.scope):
                wanted[inflow.scope.number] |= WHOLE
    for route in reversed(plan.routes):
        for stage in reversed(route.stages):
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
    return _filled(plan, wanted, paths)


def _filled(plan: Plan, wanted: Mapping[int, Paths], paths: Mapping[int, Iterable[Expr]]) -> Plan:
    def done(scope: Scope) -> Scope:
        needed = wanted[scope.number]
        return replace(scope, wanted=scope.schema if () in needed else project(scope.schema, needed))

    return replace(
        plan,
        entries=tuple(
            replace(entry, scope=done(entry.scope), paths=tuple(paths[entry.scope.number])) for entry in plan.entries
        ),
        routes=tuple(
            replace(
                route,
                scope=done(route.scope),
                inflows=_done(route.inflows, done),
                stages=tuple(
                    replace(stage, scope=done(stage.scope), after=done(stage.after)) for stage in route.stages
                ),
            )
            for route in plan.routes
        ),
        outlets=tuple(replace(outlet, inflows=_done(outlet.inflows, done)) for outlet in plan.outlets),
    )


def _done(inflows: tuple[Inflow, ...], done) -> tuple[Inflow, ...]:  # type: ignore[no-untyped-def]
    return tuple(replace(inflow, scope=done(inflow.scope)) for inflow in inflows)


def format_of(sink: Sink) -> Format | None:
    """The format that a sink asks for, if it does."""
    return sink.format if isinstance(sink, (Files, KafkaTopic, Log, Memory)) else None


def converts(sink: Sink, scope: Scope) -> bool:
    """Whether the sink gets the body written anew: a step rewrote it, or the sink wants columns or another format."""
    if scope.format is None or sink.columns:
        return True
    asked = format_of(sink)
    if isinstance(asked, Csv) and asked != scope.format:
        return True
    return asked is not None and asked.name != scope.format.name


def check_written(sink: Sink, ends: str, origin: Origin | None) -> None:
    """Raise if a sink has settings that only make sense for a source."""
    if isinstance(sink, Files) and sink.records is not None:
        raise BadEndpoint(f"{ends} {sink}, which is written in lines", origin,
                          "leave out records=: it says how files are read")  # fmt: skip


def check_sink(outlet: Outlet) -> None:
    """Raise if bodies of several formats arrive at a sink without a format, or its own schema lacks a field."""
    asked = format_of(outlet.sink)
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

"""Which fields are needed where: from the sinks back to the sources, so that only those are ever parsed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from penstock.endpoints.files import Files, Parquet, Table
from penstock.endpoints.memory import Memory
from penstock.errors import BadExpression
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.patterns.node import NOTHING, WHOLE, Node, Paths, read_paths, top_level
from penstock.plan.plan import Entry, Inflow, Outlet, Plan, Scope
from penstock.schema import Struct, project


def checked(node: Node, scope: Scope) -> Struct:
    """The schema after a step; paths that only the source's decoder can follow are refused after a rewrite."""
    for expression in node.expressions():
        for part in expression.walk():
            if isinstance(part, (nodes.XPath, nodes.JsonPath)) and not scope.raw:
                raise BadExpression("a path into the original document cannot be followed after the body was rewritten",
                                    fix="read it before the rewriting step, or use body fields")  # fmt: skip
    return node.output(scope.schema)


def fill(plan: Plan) -> Plan:
    """The plan with every scope's wanted part."""
    wanted: dict[int, Paths] = defaultdict(lambda: NOTHING)
    paths: dict[int, dict[Expr, None]] = defaultdict(dict)
    for outlet in plan.outlets:
        for inflow in outlet.inflows:
            if not inflow.scope.raw or _converts(outlet, plan.entries, inflow.scope):
                wanted[inflow.scope.number] |= WHOLE
    for route in reversed(plan.routes):
        for stage in reversed(route.stages):
            after = wanted[stage.after.number] if stage.node.rewrites else NOTHING
            wanted[stage.scope.number] |= (
                stage.node.requires(after, stage.scope.schema) if stage.node.rewrites else read_paths(stage.node.expressions())
            )
            for expression in stage.node.expressions():
                found = (part for part in expression.walk() if isinstance(part, (nodes.XPath, nodes.JsonPath)))
                paths[stage.scope.number].update(dict.fromkeys(found))
        if route.merges:
            for inflow in route.inflows:
                wanted[inflow.scope.number] |= top_level(wanted[route.scope.number], inflow.scope.schema.names)

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
                stages=tuple(replace(s, scope=done(s.scope), after=done(s.after)) for s in route.stages),
            )
            for route in plan.routes
        ),
        outlets=tuple(replace(outlet, inflows=_done(outlet.inflows, done)) for outlet in plan.outlets),
    )


def _done(inflows: tuple[Inflow, ...], done) -> tuple[Inflow, ...]:  # type: ignore[no-untyped-def]
    return tuple(replace(inflow, scope=done(inflow.scope)) for inflow in inflows)


def _converts(outlet: Outlet, entries: tuple[Entry, ...], scope: Scope) -> bool:
    """The sink asks for another format than the one the source's bodies have."""
    return converts(outlet.sink, next(entry for entry in entries if entry.scope.number == scope.number))


def converts(sink: object, entry: Entry) -> bool:
    """Columns need every field; other sinks need them only to write another format than the source's."""
    if isinstance(sink, (Parquet, Table)):
        return True
    asked = sink.format if isinstance(sink, (Files, Memory)) else None
    return asked is not None and asked.name != entry.format.name

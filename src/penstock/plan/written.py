"""Translations that a source's decoder does: it writes the new body, and the fields do not go on.

This holds for a translator of the body as it came that only renames and picks fields, if nobody reads the new body but
sinks that write JSON, and nobody needs the old one.
"""

from __future__ import annotations

from penstock.endpoints.base import Sink
from penstock.endpoints.files import Files
from penstock.endpoints.memory import Memory
from penstock.expr.nodes import Expr, Field
from penstock.expr.variant import bind
from penstock.expr.vectorized import plain_type
from penstock.formats.jsonobjects import WRITTEN
from penstock.patterns.translate import Translate
from penstock.plan.plan import Entry, Plan, Scope, Stage
from penstock.schema import Struct


def written_stage(plan: Plan, entry: Entry) -> Stage | None:
    """The one step for which the decoder of this entry writes the new body."""
    makers = [stage for stage in plan.stages() if stage.node.rewrites and stage.scope.number == entry.scope.number]
    if entry.original or len(makers) != 1 or not isinstance(makers[0].node, Translate):
        return None
    mappings = makers[0].node.mappings
    simple = all(len(target) == 1 and _is_simple(value, entry.scope.schema) for target, value in mappings)
    return makers[0] if simple and _is_only_delivered(plan, makers[0].after) else None


def written_fields(stage: Stage) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The fields of the new body, and where the decoder finds their values."""
    assert isinstance(stage.node, Translate)
    found = []
    for (name,), value in stage.node.mappings:
        bound = bind(value, stage.scope.schema)
        assert isinstance(bound, Field)
        found.append((name, tuple(str(part) for part in bound.path)))
    return tuple(found)


def _is_simple(value: Expr, schema: Struct) -> bool:
    bound = bind(value, schema)
    return isinstance(bound, Field) and plain_type(bound, schema) in WRITTEN


def _is_only_delivered(plan: Plan, scope: Scope) -> bool:
    later = [stage.node for stage in plan.stages() if stage.scope.number == scope.number]
    joined = [inflow for route in plan.routes if route.merges for inflow in route.inflows]
    sinks = [outlet.sink for outlet in plan.outlets for inflow in outlet.inflows if inflow.scope.number == scope.number]
    return (
        not any(node.rewrites or node.expressions() for node in later)
        and all(inflow.scope.number != scope.number for inflow in joined)
        and all(map(_takes_json, sinks))
    )


def _takes_json(sink: Sink) -> bool:
    asked = sink.format if isinstance(sink, (Files, Memory)) else None
    return not sink.columns and (asked is None or asked.name == "json")

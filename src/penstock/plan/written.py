"""Steps that a source's decoder does: it writes the new bodies, and the fields do not go on.

This holds for a step on the body as it came that only renames and picks fields, or makes parts of them, if nobody reads
the new bodies but sinks that write JSON, and nobody needs the old one.
"""

from __future__ import annotations

from penstock.endpoints.base import Sink
from penstock.endpoints.files import Files
from penstock.endpoints.kafka import KafkaTopic
from penstock.endpoints.log import Log
from penstock.endpoints.memory import Memory
from penstock.expr.nodes import Expr, Field
from penstock.expr.variant import bind
from penstock.expr.vectorized import plain_type
from penstock.formats.jsonobjects import WRITTEN
from penstock.formats.written import EachField, Elements, NewBody, Written
from penstock.patterns.content_filter import ContentFilter
from penstock.patterns.node import Node
from penstock.patterns.split import Split, SplitFields
from penstock.patterns.translate import Translate
from penstock.plan.plan import Entry, Plan, Scope, Stage
from penstock.schema import Array, Struct


def written_stage(plan: Plan, entry: Entry) -> tuple[Stage, Written] | None:
    """The one step that the decoder of this entry does, and what it writes."""
    makers = [stage for stage in plan.stages() if stage.node.rewrites and stage.scope.number == entry.scope.number]
    if entry.original or len(makers) != 1 or not is_only_delivered(plan, makers[0].after):
        return None
    written = _written(makers[0].node, entry.scope.schema)
    return None if written is None else (makers[0], written)


def _written(node: Node, body: Struct) -> Written | None:
    match node:
        case Translate(mappings):
            fields = [(target, _path(value, body)) for target, value in mappings]
            simple = all(len(target) == 1 and path is not None for target, path in fields)
            return NewBody(tuple((target[0], path) for target, path in fields if path)) if simple else None
        case ContentFilter():
            names = plain_fields(node.output(body))
            return NewBody(tuple((name, (name,)) for name in names)) if names else None
        case SplitFields(head, tail, None) if plain_fields(body):
            return EachField(head, node.iterable(body), tail)
        case Split(collection, None, (), (), None):
            bound = bind(collection, body)
            kind = plain_type(bound, body) if isinstance(bound, Field) else None
            names = plain_fields(kind.element) if isinstance(kind, Array) and isinstance(kind.element, Struct) else ()
            return Elements(tuple(map(str, bound.path)), names) if isinstance(bound, Field) and names else None
    return None


def _path(value: Expr, body: Struct) -> tuple[str, ...] | None:
    """Where the value of a plain field is."""
    bound = bind(value, body)
    if not isinstance(bound, Field) or plain_type(bound, body) not in WRITTEN:
        return None
    return tuple(map(str, bound.path))


def plain_fields(body: Struct) -> tuple[str, ...]:
    """The names of the fields, if there is nothing inside them."""
    return body.names if all(kind in WRITTEN for _, kind in body.fields) else ()


def is_only_delivered(plan: Plan, scope: Scope) -> bool:
    """Whether these bodies go to sinks that write JSON, and nobody reads them before."""
    later = [stage.node for stage in plan.stages() if stage.scope.number == scope.number]
    joined = [inflow for route in plan.routes if route.merges for inflow in route.inflows]
    sinks = [outlet.sink for outlet in plan.outlets for inflow in outlet.inflows if inflow.scope.number == scope.number]
    return (
        not any(node.rewrites or node.expressions() for node in later)
        and all(inflow.scope.number != scope.number for inflow in joined)
        and all(map(_takes_json, sinks))
    )


def _takes_json(sink: Sink) -> bool:
    asked = sink.format if isinstance(sink, (Files, KafkaTopic, Log, Memory)) else None
    return not sink.columns and (asked is None or asked.name == "json")

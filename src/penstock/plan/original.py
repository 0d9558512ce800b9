"""Who needs the bytes of a message again, once its fields are decoded."""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.answers import decodes
from penstock.plan.demand import converts
from penstock.plan.failing import may_fail
from penstock.plan.plan import Entry, Plan


def with_originals(plan: Plan) -> Plan:
    """The plan whose entries know whether the bytes go on: to a sink, into a dead letter, or into a later batch."""
    kept = plan.remembers or any(may_fail(stage.node) for stage in plan.stages())
    return replace(
        plan, entries=tuple(replace(entry, original=kept or _delivered(plan, entry)) for entry in plan.entries)
    )


def _delivered(plan: Plan, entry: Entry) -> bool:
    inflows = [(outlet.sink, inflow.scope) for outlet in plan.outlets for inflow in outlet.inflows]
    arriving = [(sink, scope) for sink, scope in inflows if scope.joined or scope.number == entry.scope.number]
    return not decodes(entry) or any(not converts(sink, scope) for sink, scope in arriving)

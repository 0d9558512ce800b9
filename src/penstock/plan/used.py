"""Which expressions of a step are needed, and whether the step looks at messages one by one."""

from __future__ import annotations

from penstock.expr.nodes import Expr
from penstock.expr.variant import bind
from penstock.expr.variant_nodes import VariantField, VariantNode
from penstock.plan.plan import Stage


def used_expressions(stage: Stage) -> tuple[Expr, ...]:
    """The expressions of a step whose values somebody needs."""
    return stage.node.used(stage.after.wanted)


def is_row_by_row(stage: Stage) -> bool:
    """Whether the step looks at messages one by one, because an expression looks into a VARIANT."""
    for expression in used_expressions(stage):
        bound = bind(expression, stage.scope.schema)
        moved = isinstance(bound, VariantField) and not bound.path
        if not moved and any(isinstance(part, VariantNode) for part in bound.walk()):
            return True
    return False

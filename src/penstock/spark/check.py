"""What the reference can do and Spark cannot, found before Spark starts."""

from __future__ import annotations

from penstock.errors import UnsupportedOnSpark
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.expr.variant import bind
from penstock.plan.plan import Plan, Stage
from penstock.reference.steps import used_expressions
from penstock.spark.python_functions import functions_of


def check(plan: Plan) -> None:
    for stage in plan.stages():
        before = set(functions_of(stage))
        for expression in used_expressions(stage):
            for part in bind(expression, stage.scope.schema).walk():
                _check(part, stage)
            for part in expression.walk():
                if isinstance(part, nodes.Function) and part not in before:
                    raise _refused(stage, f"cannot call the Python function {part.name} inside any(...) or select(...)",
                                   "apply it to the whole collection, or use a script step")  # fmt: skip


def _check(part: Expr, stage: Stage) -> None:
    if isinstance(part, nodes.JsonPath):
        reason = part.unsupported or "more than singular paths and filters"
        raise _refused(stage, f"cannot follow the JSONPath {part.query}: it uses {reason}",
                       "use singular paths and filters, or a script step")  # fmt: skip


def _refused(stage: Stage, what: str, fix: str) -> UnsupportedOnSpark:
    return UnsupportedOnSpark(f"route {stage.route!r}, step {stage.node.name!r}: Spark {what}", stage.node.origin, fix)

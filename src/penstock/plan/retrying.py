"""Which steps of a route try a failed message again at once; at the others it waits for a later batch.

A step can try again at once if nothing but its own result can be different the next time: after a wait, the message
would come back the same, apart from the header that counts its tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.expr.nodes import HEADER, Expr, Field, Function
from penstock.patterns.aggregate import Aggregate
from penstock.patterns.node import Node
from penstock.patterns.redelivery import REDELIVERED, Redelivery
from penstock.patterns.strategy import Custom
from penstock.plan.plan import Stage


def with_tries(stages: Sequence[Stage], policy: Redelivery | None) -> tuple[Stage, ...]:
    """The steps of a route; those that try again at once have the policy for it."""
    if policy is None or policy.delay:
        return tuple(stages)
    nodes = [stage.node for stage in stages]
    return tuple(
        replace(stage, at_once=policy) if _alone(stage.node, nodes[:number], policy) else stage
        for number, stage in enumerate(stages)
    )


def _alone(node: Node, before: Sequence[Node], policy: Redelivery) -> bool:
    if isinstance(node, Aggregate) and isinstance(node.strategy, Custom):
        return False  # a group that failed: its members come back one by one
    if not (node.calls or node.needs_value):
        return True  # nothing to try again
    if node.needs_value and _may_differ(node):
        return False  # a function may give the missing value the next time, and so may the header
    if _functions(node) > 1 and any(map(counts_tries, node.expressions())):
        return False  # all of them are called again with another header, not only the one that failed
    return not (policy.restarts and any(_may_differ(one) or one.stateful for one in before))


def _functions(node: Node) -> int:
    return len({part for value in node.expressions() for part in value.walk() if isinstance(part, Function)})


def _may_differ(node: Node) -> bool:
    """Whether another try of the same message may have another result."""
    return node.calls or any(map(counts_tries, node.expressions()))


def counts_tries(expression: Expr) -> bool:
    """Whether an expression reads the header that another try changes."""
    fields = (part for part in expression.walk() if isinstance(part, Field))
    return any(field.root == HEADER and field.path[0] == REDELIVERED for field in fields)

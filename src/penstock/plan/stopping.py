"""Which steps stop the rest of the parts or copies that they made of a message, once too many of these have failed.

The parts of one split message, or the copies of one multicast message, are a *family*. Its members are looked at in
order. A member has failed when it, or anything made of it, is a dead letter. The members after the failure that is too
many become dead letters of the step that made them.
"""

from __future__ import annotations

from penstock.budget import Budget, budget_text
from penstock.errors import BadRoute
from penstock.patterns.recipients import Recipients
from penstock.patterns.split import Split, SplitFields
from penstock.plan.failing import may_fail_after, stages_after
from penstock.plan.plan import Plan, Stage

STOPPED = "Stopped"


def stopping_stages(plan: Plan) -> tuple[Stage, ...]:
    """The steps that may stop messages; not those behind which nothing can fail."""
    return tuple(
        stage
        for stage in plan.stages()
        if stage.node.stopping is not None and (isinstance(stage.node, Recipients) or may_fail_after(plan, stage))
    )


def allowed(stage: Stage) -> Budget:
    assert stage.node.stopping is not None
    return stage.node.stopping


def reason_of(stage: Stage) -> str:
    """Why a member is stopped, to be filled with the number of the first that failed, how many there are, and the
    error, the route, the step and the reason of that failure.
    """
    rule = f"{stage.title} stops on exception"
    if _splits(stage):
        rule = f"more failed than the error budget of {stage.title} allows: {budget_text(allowed(stage))}"
    member, rule = "part" if _splits(stage) else "copy", rule.replace("%", "%%")
    return f"{member} %d of %d failed first (%s at %s.%s: %s), and {rule}"


def _splits(stage: Stage) -> bool:
    return isinstance(stage.node, (Split, SplitFields))


def check_stopping(plan: Plan) -> Plan:
    """Raise if something done for a message could not be undone when the message is stopped later in the same batch."""
    routes = {route.name: route for route in plan.routes}
    for stage in plan.stages():
        if stage.node.stopping is None:
            continue
        for later in (stage, *stages_after(plan, stage)):
            if later.node.stateful:
                why = f"step {later.node.name!r} of route {later.route!r} keeps state"
                fix = "remember before that step, or in an app that reads what this one writes"
            elif routes[later.route].redelivery is not None:
                why, fix = f"route {later.route!r} tries messages again", "put on_error on a route before that step"
            else:
                continue
            what = "error_budget" if _splits(stage) else "stop_on_exception"
            raise BadRoute(f"route {stage.route!r}, step {stage.node.name!r}: {what} may stop messages on their way, "
                           f"and {why}, which cannot be undone", stage.node.origin,
                           f"{fix}; or leave out {what}")  # fmt: skip
    return plan

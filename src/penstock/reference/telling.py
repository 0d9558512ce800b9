"""What a trace says about a message at a step: the values of the step's expressions, and what became of the message."""

from __future__ import annotations

from typing import Any

from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.message import Message
from penstock.plan.plan import PlannedRoute, Stage
from penstock.reference.effects import Continue, Dead, Effect, Filtered, Held, Send
from penstock.reference.steps import Failure, value_of


def values_at(stage: Stage, message: Message) -> tuple[tuple[str, Any], ...]:
    return tuple((to_text(expression), _value(stage, expression, message)) for expression in stage.node.expressions())


def _value(stage: Stage, expression: Expr, message: Message) -> Any:
    try:
        return value_of(stage, expression, message)
    except Failure as failure:
        return failure.dead.reason


def said(route: PlannedRoute, message: Message | None, effects: list[Effect]) -> str:
    words = []
    for effect in effects:
        match effect:
            case Continue(continued, note):
                part = continued.lineage
                words.append(f"on as part {part.index + 1} of {part.count}" if part and len(effects) > 1 else "on")
                words.extend([note] if note else [])
            case Send(channel):
                words.append(f"-> {channel}")
            case Filtered():
                words.append("filtered")
            case Held(note):
                words.append(f"held ({note})" if note else "held")
            case Dead(error, reason, other):
                died, policy = other or message, route.redelivery
                again = died is not None and policy is not None and policy.covers(error, died.journey.attempt)
                words.append(f"{'failed, to be tried again' if again else 'dead letter'}: {error}: {reason}")
    return ", ".join(words)

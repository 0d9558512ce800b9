"""The meaning of the aggregator: groups of messages that wait to become one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.message import Journey, Message
from penstock.patterns.aggregate import (
    BY_BATCH,
    BY_INTERVAL,
    BY_NEW_GROUP,
    BY_PREDICATE,
    BY_SIZE,
    BY_STOP,
    BY_TIMEOUT,
    CLOSED_GROUP,
    COMPLETED_BY,
    CORRELATION,
    GROUP_SIZE,
    PARTS,
    Aggregate,
    closed_reason,
)
from penstock.patterns.key import DISCARD, HOLD, INVALID_KEY, NO_PARENT, NO_VALUE, key_text
from penstock.plan.plan import Stage
from penstock.reference.effects import Continue, Effect, Filtered, Held
from penstock.reference.state import Key, State, refused
from penstock.reference.steps import Failure, value_of
from penstock.reference.strategies import combined, member_values


@dataclass
class Group:
    first: float
    last: float
    members: list[tuple[Message, tuple[Any, ...]]] = field(default_factory=list)


class Groups(State):
    """The aggregator's open groups, and how long the completed ones stay closed."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        assert isinstance(stage.node, Aggregate)
        self.node = stage.node
        self.open: dict[Key, Group] = {}
        self.closed: dict[Key, float] = {}

    @property
    def held(self) -> int:
        return sum(len(group.members) for group in self.open.values())

    def due(self, now: float) -> list[Effect]:
        self.closed = {key: until for key, until in self.closed.items() if now < until}
        discarded = self.node.on_timeout == DISCARD
        late = [(key, reason) for key, group in self.open.items() if (reason := self._overdue(group, now))]
        return [effect for key, reason in late for effect in self._complete(key, reason, now, discarded)]

    def _overdue(self, group: Group, now: float) -> str | None:
        if self.node.timeout is not None and now >= group.last + self.node.timeout:
            return BY_TIMEOUT
        if self.node.interval is not None and now >= group.first + self.node.interval:
            return BY_INTERVAL
        return None

    def _accept(self, message: Message, now: float) -> list[Effect]:
        node, part = self.node, message.lineage
        key = self._key(node.by, message) if node.by else (part.parent if part else None,)
        complete_at = (part.count if part else None) if node.size == PARTS else node.size
        completes = node.when is not None and bool(value_of(self.stage, node.when, message))
        values = member_values(self.stage, node.strategy, message)
        if node.by and None in key:
            return refused(node.invalid, INVALID_KEY, NO_VALUE, message)
        if node.needs_parts and part is None:
            return refused(node.invalid, INVALID_KEY, NO_PARENT, message)
        if key in self.closed:
            return refused(node.closed, CLOSED_GROUP, closed_reason(key_text(key)), message)
        effects: list[Effect] = []
        if node.new_group and key not in self.open:
            effects = [effect for other in list(self.open) for effect in self._complete(other, BY_NEW_GROUP, now)]
        group = self.open.setdefault(key, Group(now, now))
        group.last = now
        group.members.append((message, values))
        if isinstance(complete_at, int) and len(group.members) >= complete_at:
            return effects + self._complete(key, BY_SIZE, now)
        if completes:
            return effects + self._complete(key, BY_PREDICATE, now)
        return [*effects, Held(f"{len(group.members)}" + (f" of {complete_at}" if complete_at else ""))]

    def end(self, now: float) -> list[Effect]:
        return self._all(BY_BATCH, now) if self.node.batch_end else []

    def stop(self, policy: str, now: float) -> list[Effect]:
        policy = self.node.on_stop or policy
        return [] if policy == HOLD else self._all(BY_STOP, now, policy == DISCARD)

    def _all(self, reason: str, now: float, discarded: bool = False) -> list[Effect]:
        return [effect for key in list(self.open) for effect in self._complete(key, reason, now, discarded)]

    def _complete(self, key: Key, reason: str, now: float, discarded: bool = False) -> list[Effect]:
        members = self.open.pop(key).members
        if self.node.closed_for is not None:
            self.closed[key] = now + self.node.closed_for
        if discarded:
            return [Filtered() for _ in members]
        try:
            body = combined(self.node.strategy, self.stage.scope.schema, members)
        except Failure as failure:
            return [replace(failure.dead, message=message) for message, _ in members]
        merged = self._merged(key, reason, [message for message, _ in members], body)
        return [Continue(merged, f"completed by {reason}")]

    def _merged(self, key: Key, reason: str, members: list[Message], body: dict[str, Any]) -> Message:
        first, count = members[0], len(members)
        about = {CORRELATION: key_text(key), COMPLETED_BY: reason, GROUP_SIZE: str(count)}
        return replace(
            first.with_fields(body),
            id=f"{first.id}+{count - 1}" if self.node.by else key[0],
            headers={**first.headers, **about},
            time=members[-1].time,
            lineage=None,
            journey=Journey(first.journey.order),
        )

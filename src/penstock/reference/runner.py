"""Lead messages through a plan, batch by batch.

Steps without memory are passed one message at a time. At a step with memory messages gather, and when all have come it
takes them in the order of their source: so the order in which routes are walked does not matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.clock import begin_batch
from penstock.failures import DECODE
from penstock.formats import Json, Malformed
from penstock.message import DeadLetter, Journey, Message
from penstock.patterns.aggregate import Aggregate
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.key import FLUSH, HOLD
from penstock.patterns.redelivery import ORIGINAL, SOONEST
from penstock.patterns.resequence import Resequence
from penstock.plan.demand import converts
from penstock.plan.plan import Entry, Outlet, Plan, PlannedRoute, Scope, Stage
from penstock.reference.decode import decode
from penstock.reference.effects import Continue, Dead, Effect, Filtered, Held, Send, numbered
from penstock.reference.family import Family
from penstock.reference.groups import Groups
from penstock.reference.outcome import Outcome, TraceStep
from penstock.reference.seen import Seen
from penstock.reference.sequences import Sequences
from penstock.reference.state import Key, State
from penstock.reference.steps import apply, narrowed
from penstock.reference.telling import said, values_at
from penstock.reference.tries import Retry, again, tries

_STATES: dict[type, type[State]] = {Aggregate: Groups, Resequence: Sequences, Idempotent: Seen}


@dataclass
class Runner:
    """A run: what is remembered, and the outcome of the batch at hand. With `steps`, every step is noted there."""

    plan: Plan
    steps: list[TraceStep] | None = None
    now: float = 0.0
    outcome: Outcome = field(default_factory=Outcome)
    states: dict[str, State] = field(default_factory=dict)
    gathered: dict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    retries: list[Retry] = field(default_factory=list)
    failed: dict[str, set[tuple[Key, int]]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.routes = {route.name: route for route in self.plan.routes}
        self.remembering = [
            (route, index)
            for route in self.plan.routes
            for index, stage in enumerate(route.stages)
            if stage.node.stateful
        ]
        for route, index in self.remembering:
            stage = route.stages[index]
            self.states[stage.title] = _STATES[type(stage.node)](stage)

    def batch(
        self, now: float, arrivals: Iterable[tuple[Entry, Message]], resumed: Iterable[tuple[Stage, Message]] = ()
    ) -> Outcome:
        """One batch: what is due, what arrives, what the end of the batch brings about.

        Messages that are `resumed` arrive in the middle of a route, at a step, with the body for it.
        """
        before = self._begin()
        self._pass(now, arrivals, resumed)
        return self._counted(before)

    def stop(self, stream: bool = False) -> Outcome:
        """The end of the run. A stream keeps what waits; else messages that wait for another batch get it."""
        before = self._begin()
        while True:
            if not stream:
                self._further_rounds()
            for route, index in self.remembering:
                self._visit(route, index)
                stage = route.stages[index]
                state = self.states[stage.title]
                held = state.held
                self._spread(route, index, state.stop(HOLD if stream else FLUSH, self.now), state.held - held)
            self._forget_failed()
            if stream or not self._restless():
                return self._counted(before)

    def _begin(self) -> int:
        self.outcome = Outcome(channels={outlet.channel: [] for outlet in self.plan.outlets})
        titles = [f"{entry.route}.{DECODE}" for entry in self.plan.entries]
        self.outcome.steps = {title: Counter() for title in (*titles, *(one.title for one in self.plan.stages()))}
        return self._held()

    def _counted(self, before: int) -> Outcome:
        self.outcome.held = self._held() - before
        return self.outcome

    def _held(self) -> int:
        return sum(state.held for state in self.states.values()) + len(self.retries)

    def _pass(
        self, now: float, arrivals: Iterable[tuple[Entry, Message]], resumed: Iterable[tuple[Stage, Message]] = ()
    ) -> None:
        self.now = now
        begin_batch(round(now * 1e6))
        self._try_again()
        for stage, message in resumed:
            self.outcome.received += 1
            route = self.routes[stage.route]
            self._walk(route, route.stages.index(stage), message)
        for entry, message in arrivals:
            self._enter(entry, message)
        for route, index in self.remembering:
            title = route.stages[index].title
            state = self.states[title]
            for message in state.again():
                self._count(route, index, received=-1, held=-1)
                self.gathered[title].append(message)
            held = state.held
            self._spread(route, index, state.due(now), state.held - held)
            self._visit(route, index)
        self._forget_failed()

    def _forget_failed(self) -> None:
        """The batch is over, and it is known which messages failed: tell the receivers."""
        for title, state in self.states.items():
            state.forget_failed(self.failed.pop(title, set()))

    def _restless(self) -> bool:
        return bool(self.retries) or any(state.undecided for state in self.states.values())

    def _further_rounds(self) -> None:
        """Batches without arrivals; the clock moves to the next try where nothing else is left to do."""
        while self._restless():
            if any(state.undecided for state in self.states.values()):
                self._pass(self.now + SOONEST, ())  # no two batches are at the same time
            else:
                self._pass(max(self.now, min(retry.due for retry in self.retries)), ())

    def _visit(self, route: PlannedRoute, index: int) -> None:
        """All messages that have gathered at a step, in the order of their source, and then its end of the batch."""
        stage = route.stages[index]
        state = self.states[stage.title]
        for message in sorted(self.gathered.pop(stage.title, []), key=lambda message: message.journey.order):
            held = state.held
            message, effects = self._tried(route, index, message, lambda one: state.accept(one, self.now))
            self._spread(route, index, effects, state.held - held, message)
        held = state.held
        self._spread(route, index, state.end(self.now), state.held - held)

    def _spread(
        self, route: PlannedRoute, index: int, effects: list[Effect], held: int, message: Message | None = None
    ) -> None:
        """The effects of a step with memory. Of what came in and went out, copies are the rest of the sum."""
        gone = [effect for effect in effects if not isinstance(effect, Held)]
        copied = len(gone) + held - (message is not None)
        self._count(route, index, received=int(message is not None), copied=copied, held=held)
        if effects:
            self._note_effects(route, index, message, effects)
        for effect in gone:
            self._follow(route, index, message, effect)

    def _enter(self, entry: Entry, message: Message) -> None:
        self.outcome.received += 1
        decoding = self.outcome.steps[f"{entry.route}.{DECODE}"]
        decoding["received"] += 1
        place = message.position
        order = self.plan.entries.index(entry), place.topic, place.partition, place.offset
        message = replace(message, journey=Journey(order, tried=message.journey.tried))
        fields = decode(entry, message.raw)
        decoding["dead" if isinstance(fields, Malformed) else "sent"] += 1
        if isinstance(fields, Malformed):
            count = tries(message, entry.route)
            self.outcome.dead.append(DeadLetter(message, entry.route, DECODE, fields.error, fields.reason, count))
            self._note(entry.route, DECODE, entry.format.name, (), f"dead letter: {fields.error}: {fields.reason}")
        else:
            self._arrive(self.routes[entry.route], replace(message, fields=fields))

    def _arrive(self, route: PlannedRoute, message: Message) -> None:
        """A message at the start of a route: its tries are counted anew."""
        fresh = replace(message, journey=replace(message.journey, attempt=tries(message, route.name), original=None))
        if route.redelivery is not None and route.redelivery.message == ORIGINAL:
            fresh = replace(fresh, journey=replace(fresh.journey, original=fresh))
        self._walk(route, 0, fresh)

    def _walk(self, route: PlannedRoute, index: int, message: Message) -> None:
        stage = route.stages[index]
        if stage.node.stateful:
            self.gathered[stage.title].append(message)
            return
        message, effects = self._tried(route, index, message, lambda one: apply(stage, one))
        self._count(route, index, received=1, copied=len(effects) - 1)
        self._note_effects(route, index, message, effects)
        family = Family(stage, len(effects))
        for number, effect in enumerate(effects):
            known, stopped = len(self.outcome.dead), family.stopped(message, effect)
            if stopped is not None:
                self._note(route.name, stage.node.name, stage.node.pattern, (), said(route, message, [stopped]))
            member = stopped or (numbered(effect, number) if len(effects) > 1 else effect)
            self._follow(route, index, message, member)
            family.add(number, self.outcome.dead[known:])

    def _tried(
        self, route: PlannedRoute, index: int, message: Message, step: Callable[[Message], list[Effect]]
    ) -> tuple[Message, list[Effect]]:
        """What a step does with a message, at the last of its tries at once, and the message at that try."""
        stage = route.stages[index]
        while True:
            effects = step(message)
            match effects:
                case [Dead(error, _, None)] if message.journey.attempt <= stage.tries(error):
                    self._note_effects(route, index, message, effects)
                    message = again(message, message)
                case _:
                    return message, effects

    def _follow(self, route: PlannedRoute, index: int, message: Message | None, effect: Effect) -> None:
        stage = route.stages[index]
        match effect:
            case Continue(continued):
                self._count(route, index, sent=1)
                self._walk(route, index + 1, continued)
            case Send(channel, sent):
                self._count(route, index, sent=1)
                self._send(channel, sent, stage.after if stage.node.rewrites else stage.scope)
            case Filtered():
                self._count(route, index, filtered=1)
                self.outcome.filtered[stage.title] += 1
            case Dead(_, _, other):
                died = other or message
                assert died is not None
                self._fail(route, index, died, effect)

    def _send(self, channel: str, message: Message, scope: Scope) -> None:
        reader = self.plan.readers.get(channel)
        if reader is None:
            outlet = next(outlet for outlet in self.plan.outlets if outlet.channel == channel)
            self.outcome.channels[channel].append(self._encoded(outlet, message, scope))
            return
        route = self.routes[reader]
        if scope.number != route.scope.number:
            fields = narrowed(message.fields or {}, route.scope.wanted)
            message = replace(message, fields=fields, rewritten=not route.scope.raw)
        self._arrive(route, message)

    def _encoded(self, outlet: Outlet, message: Message, scope: Scope) -> Message:
        if not converts(outlet.sink, scope):
            return message
        asked = getattr(outlet.sink, "format", None)
        fields = narrowed(message.fields or {}, scope.wanted)
        return replace(message, raw=(asked or Json(scope.schema)).encode(fields), fields=fields)

    def _fail(self, route: PlannedRoute, index: int, message: Message, dead: Dead) -> None:
        """A message that failed waits for its next try, or is a dead letter."""
        attempt = message.journey.attempt
        policy, stage = route.redelivery, route.stages[index]
        for title, key, batch in message.journey.admitted:
            self.failed[title].add((key, batch))
        if policy is None or stage.at_once is not None or not policy.covers(dead.error, attempt):
            self._count(route, index, dead=1)
            self.outcome.dead.append(DeadLetter(message, route.name, stage.node.name, dead.error, dead.reason, attempt))
            return
        original = message.journey.original
        if original is not None:
            self._count(route, index, sent=1)
            index = 0
            self._count(route, index, received=1)
        self._count(route, index, held=1)
        due = policy.due(message.id, attempt, self.now)
        self.retries.append(Retry(due, route, index, again(message, original or message)))

    def _try_again(self) -> None:
        """Tries that are due. What fails again is due in a later batch."""
        ready = [retry for retry in self.retries if retry.due <= self.now]
        self.retries = [retry for retry in self.retries if retry.due > self.now]
        for retry in ready:
            self._count(retry.route, retry.index, received=-1, held=-1)
            self._walk(retry.route, retry.index, retry.message)

    def _count(self, route: PlannedRoute, index: int, copied: int = 0, **numbers: int) -> None:
        """Add to the numbers of a step. A message that is tried again waits there and has not left it."""
        self.outcome.copied += copied
        self.outcome.steps[route.stages[index].title].update(numbers, copied=copied)

    def _note_effects(self, route: PlannedRoute, index: int, message: Message | None, effects: list[Effect]) -> None:
        if self.steps is not None:
            stage = route.stages[index]
            values = () if message is None else values_at(stage, message)
            self._note(route.name, stage.node.name, stage.node.pattern, values, said(route, message, effects))

    def _note(self, route: str, step: str, pattern: str, values: tuple[tuple[str, Any], ...], outcome: str) -> None:
        if self.steps is not None:
            self.steps.append(TraceStep(route, step, pattern, values, outcome))

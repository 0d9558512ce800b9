"""Lead a block of messages through the steps and routes of an app, in the order in which messages meet them.

The way ends at a step that remembers (aggregator, resequencer, idempotent receiver): the caller takes the messages from
there, and stores those that wait for another try.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.kernel.block import Block, FirstForm, Numbers, many, together
from penstock.kernel.content import fitted
from penstock.kernel.family import marked, stopped, unmarked, without
from penstock.kernel.outcome import Died, Letters, Moved, Outcome
from penstock.kernel.steps import Step, tried_again
from penstock.patterns.redelivery import SOONEST, Redelivery
from penstock.plan.plan import Plan, Stage
from penstock.plan.stopping import stopping_stages

Place = tuple[int, int]
"""A route and a step of it, by their numbers."""


MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Waiting:
    """Messages that come back to the step `title` in a later batch, each after at least so many microseconds.

    They wait for another try, and are in `failed` as they failed; or they wait until the fate of another message is
    known.
    """

    title: str
    block: Block
    after: Numbers
    failed: Block | None = None


@dataclass
class Ends:
    """Where the messages of a block ended, and what each step counted.

    `came` has, by step, the origins of the messages that came there. `held` has the messages that arrived at a step
    that remembers, with their keys.
    """

    delivered: dict[str, list[Block]] = field(default_factory=lambda: defaultdict(list))
    dead: list[Letters] = field(default_factory=list)
    filtered: Counter[str] = field(default_factory=Counter)
    steps: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    came: dict[str, list[Numbers]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, list[Block]] = field(default_factory=lambda: defaultdict(list))
    waiting: list[Waiting] = field(default_factory=list)

    def add(self, other: Ends) -> None:
        for channel, blocks in other.delivered.items():
            self.delivered[channel] += blocks
        self.dead += other.dead
        self.filtered.update(other.filtered)
        for title, numbers in other.steps.items():
            self.steps[title].update(numbers)
        for title, origins in other.came.items():
            self.came[title] += origins
        for title, blocks in other.held.items():
            self.held[title] += blocks
        self.waiting += other.waiting

    @property
    def failed(self) -> list[Block]:
        """Messages that are dead letters, or will be tried again."""
        return [one.died.block for one in self.dead] + [one.failed for one in self.waiting if one.failed is not None]

    @property
    def copied(self) -> int:
        return sum(numbers["copied"] for numbers in self.steps.values())


class Flow:
    """The steps of an app as functions over blocks, and the way between them; made once, and pickled to the workers."""

    def __init__(self, plan: Plan) -> None:
        self.routes = {route.name: number for number, route in enumerate(plan.routes)}
        self.scopes = [route.scope for route in plan.routes]
        self.readers = dict(plan.readers)
        self.steps = {(number, index): Step.of(stage) for number, route in enumerate(plan.routes)
                      for index, stage in enumerate(route.stages)}  # fmt: skip
        self.places = {step.stage.title: place for place, step in self.steps.items()}
        self.policies = [route.redelivery if route.waits else None for route in plan.routes]
        self.stopping = frozenset(stage.title for stage in stopping_stages(plan))

    def run(self, route: str, block: Block) -> Ends:
        """Lead a block through the app from the start of a route."""
        return self._run({(self.routes[route], 0): [block]})

    def resume(self, title: str, block: Block) -> Ends:
        """Lead a block on from a step in the middle of a route."""
        place = self.places[title]
        return self._run({place: [block]}, place)

    def try_again(self, title: str, block: Block) -> Ends:
        """Lead on messages that waited for this step, which has counted them as received before."""
        ends = self.resume(title, block)
        ends.came[title].pop(0)
        ends.steps[title].update(received=-len(block), held=-len(block))
        return ends

    def after(self, title: str, outcome: Outcome) -> Ends:
        """Lead on the messages that a step that remembers sends on; those it cannot decide yet begin to wait."""
        place = self.places[title]
        ends = self._followed(self.steps[place].stage, place, outcome)
        if outcome.undecided is not None:
            count = len(outcome.undecided)
            ends.steps[title]["held"] += count
            ends.waiting.append(Waiting(title, outcome.undecided, np.ones(count, np.int64)))
        return ends

    def _run(self, starts: Mapping[Place, list[Block]], resumed: Place | None = None) -> Ends:
        ends, waiting = Ends(), dict(starts)
        while waiting:
            place = min(waiting)
            blocks = waiting.pop(place)
            if rest := blocks[(first := many(blocks)) :]:
                waiting[place] = rest
            block = together(blocks[:first])
            if place[1] == 0 and place != resumed:
                block = self._begun(place[0], block)
            step = self.steps[place]
            title = step.stage.title
            ends.came[title].append(block.origin)
            outcome = _numbered(step(block), len(block))
            ends.steps[title].update(received=len(block), copied=outcome.count - len(block))
            if step.stage.node.stateful:
                ends.held[title] += [moved.block for moved in outcome.moved]
                outcome.moved = []
            if title in self.stopping:
                self._follow_family(step.stage, place, outcome, ends)
            else:
                self._follow(step.stage, place, outcome, waiting, ends)
        return ends

    def _follow(
        self, stage: Stage, place: Place, outcome: Outcome, waiting: dict[Place, list[Block]], ends: Ends
    ) -> None:
        counts = ends.steps[stage.title]
        for moved in outcome.moved:
            counts["sent"] += len(moved.rows)
            if moved.to is None:
                waiting.setdefault((place[0], place[1] + 1), []).append(moved.block)
            else:
                self._send(moved.to, moved.block, waiting, ends)
        for died in outcome.died:
            dead = self._without_waiting(stage, place, died, ends)
            counts["dead"] += len(dead.rows)
            if len(dead.rows):
                ends.dead.append(Letters(stage.route, stage.node.name, dead))
        if len(outcome.filtered):
            counts["filtered"] += len(outcome.filtered)
            ends.filtered[stage.title] += len(outcome.filtered)

    def _send(self, channel: str, block: Block, waiting: dict[Place, list[Block]], ends: Ends) -> None:
        reader = self.readers.get(channel)
        if reader is None:
            ends.delivered[channel].append(block)
            return
        number = self.routes[reader]
        scope = self.scopes[number]
        if block.scope.number != scope.number:
            block = block.with_table(scope, fitted(block.fields, scope.wanted))
        waiting.setdefault((number, 0), []).append(block)

    def _begun(self, number: int, block: Block) -> Block:
        """The messages at the start of a route, where their tries are counted anew."""
        policy, route = self.policies[number], self.steps[number, 0].stage.route
        fresh = replace(block, attempt=block.arrived.attempts(route, block.origin), first=None)
        if policy is None or not policy.restarts:
            return fresh
        return replace(fresh, first=FirstForm(fresh, np.arange(len(fresh))))

    def _without_waiting(self, stage: Stage, place: Place, died: Died, ends: Ends) -> Died:
        """Let failed messages wait for another try where redelivery grants one; the others are returned as dead."""
        policy = self.policies[place[0]]
        if policy is None or stage.at_once is not None:
            return died
        tries = died.block.tries.tolist()
        again = np.array([policy.covers(error, count) for error, count in zip(died.errors, tries, strict=True)], bool)
        if not again.any():
            return died
        failed = died.block.where(again)
        back = np.full(len(failed), -1) if failed.first is None else failed.first.rows
        for is_back in (False, True):
            chosen = (back >= 0) == is_back
            if chosen.any():
                self._wait(policy, place, failed.where(chosen), is_back, ends)
        return died.some(np.flatnonzero(~again))

    def _wait(self, policy: Redelivery, place: Place, failed: Block, is_back: bool, ends: Ends) -> None:
        title, block = self.steps[place].stage.title, tried_again(failed)
        if is_back:
            assert failed.first is not None
            form, rows = failed.first.block, failed.first.rows
            ends.steps[title]["sent"] += len(failed)
            title = self.steps[place[0], 0].stage.title
            ends.steps[title]["received"] += len(failed)
            ends.came[title].append(failed.origin)
            block = replace(tried_again(failed, form.take(rows)), first=failed.first)
        ends.steps[title]["held"] += len(failed)
        pairs = zip(failed.ids.to_pylist(), failed.tries.tolist(), strict=True)
        seconds = np.array([max(policy.wait(identity, count), SOONEST) for identity, count in pairs])
        after = np.maximum(np.round(seconds * MICROSECONDS).astype(np.int64), 1)
        ends.waiting.append(Waiting(title, block, after, failed))

    def _follow_family(self, stage: Stage, place: Place, outcome: Outcome, ends: Ends) -> None:
        """Follow all members to their ends; if so many fail that some are to be stopped, do it again without these.

        The user's functions are then called twice, and more often where such steps are inside each other.
        """
        members, known = marked(outcome)
        trial = self._followed(stage, place, known)
        gone = stopped(stage, members, trial.dead)
        if gone is not None:
            trial = self._followed(stage, place, without(known, gone))
        trial.dead = [replace(one, died=replace(one.died, block=unmarked(one.died.block))) for one in trial.dead]
        for blocks in trial.delivered.values():
            blocks[:] = map(unmarked, blocks)
        ends.add(trial)

    def _followed(self, stage: Stage, place: Place, outcome: Outcome) -> Ends:
        ends, waiting = Ends(), dict[Place, list[Block]]()
        self._follow(stage, place, outcome, waiting, ends)
        ends.add(self._run(waiting))
        return ends


def _numbered(outcome: Outcome, length: int) -> Outcome:
    """Note in the blocks of the outcome which part or copy each message is, where the step made several of one."""
    every: list[Moved | Died] = [*outcome.moved, *outcome.died]
    if all(one.number is None for one in every):
        return outcome
    made = np.zeros(length, np.int64)
    for one in every:
        np.add.at(made, one.rows, 1)

    def ordered(block: Block, rows: Numbers, number: Numbers | None) -> Block:
        level = np.full(len(rows), -1) if number is None else np.where(made[rows] > 1, number, -1)
        return replace(block, order=(*block.order, level))

    return Outcome(
        [replace(one, block=ordered(one.block, one.rows, one.number)) for one in outcome.moved],
        [replace(one, block=ordered(one.block, one.rows, one.number)) for one in outcome.died],
        outcome.filtered,
    )

"""Whether an app can run in the tasks that read its sources, and the steps that these then do.

It can if every step is one that the decoder answers or writes, or that only moves or copies messages, if nothing but a
body can be bad, and sinks take bodies as they are. One aggregator may stand between, see `gathering.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.endpoints.files import Files
from penstock.endpoints.kafka import KafkaTopic
from penstock.endpoints.log import Log
from penstock.patterns.aggregate import Aggregate
from penstock.patterns.balance import ROUND_ROBIN, WEIGHTED, Balance
from penstock.patterns.choice import Choice
from penstock.patterns.filter import Filter
from penstock.patterns.join import Join
from penstock.patterns.multicast import Multicast
from penstock.patterns.node import DEAD as DEAD_POLICY
from penstock.patterns.split import Split, SplitFields
from penstock.patterns.tap import Tap
from penstock.patterns.to import To
from penstock.plan.answers import Question, question
from penstock.plan.demand import converts
from penstock.plan.failing import may_fail
from penstock.plan.plan import Plan, Stage
from penstock.plan.stopping import stopping_stages
from penstock.spark.direct.gathering import Gathering, gathered
from penstock.spark.direct.rows import Choose, Copy, Gather, Part, Send, Sift, Step, TakeTurns, Visit
from penstock.spark.frame import COPIED, DEAD, IN, Places
from penstock.spark.write.outlets import Target


def is_direct(plan: Plan, targets: Mapping[int, Target]) -> bool:
    entries = {entry.scope.number for entry in plan.entries}
    gathering = gathered(plan)
    return (
        (not plan.remembers or (gathering is not None and _can_gather(plan, gathering.stage, entries)))
        and not stopping_stages(plan)
        and not any(route.merges for route in plan.routes)
        and all(isinstance(entry.source, (Files, Log, KafkaTopic)) for entry in plan.entries)
        and all(_is_simple(stage, entries) or (gathering and stage == gathering.stage) for stage in plan.stages())
        and all(not target.wants_meta or target.dead for target in targets.values())
        and _is_written(plan, gathering)
    )


def _can_gather(plan: Plan, aggregator: Stage, entries: set[int]) -> bool:
    """Whether messages come to the aggregator as they were read, and nobody counts those that it sends on."""
    stages = plan.stages()
    place = stages.index(aggregator)
    copying = (stage for stage in stages[:place] if stage.node.messages in ("1:2", "1:n"))
    turns = (stage for stage in stages[place:] if isinstance(stage.node, Balance))
    waiting = (route for route in plan.routes if route.waits)
    return aggregator.scope.number in entries and not any((*copying, *turns, *waiting))


def _is_written(plan: Plan, gathering: Gathering | None) -> bool:
    """Sinks get bodies as they came, or as the decoder or an aggregator writes them."""
    ready = {stage.after.number for stage in plan.stages() if stage.written}
    if gathering is not None:
        ready.add(gathering.stage.after.number)
    return all(
        inflow.scope.number in ready or not converts(outlet.sink, inflow.scope)
        for outlet in plan.outlets
        for inflow in outlet.inflows
    )


def _is_simple(stage: Stage, entries: set[int]) -> bool:
    node = stage.node
    match node:
        case Filter() | Choice():
            return stage.scope.number in entries and question(stage) is not None
        case Balance(strategy=strategy):
            return strategy in (ROUND_ROBIN, WEIGHTED)
        case To() | Join() | Multicast() | Tap():
            return not may_fail(node)
    return stage.written


def visits(plan: Plan) -> tuple[Visit, ...]:
    places = Places.of(plan)
    return tuple(
        Visit(places.routes[stage.route], places.marks[IN, stage.title], _step(plan, stage, places))
        for stage in plan.stages()
    )


def _step(plan: Plan, stage: Stage, places: Places) -> Step | None:
    match stage.node:
        case Filter(discard=discard):
            return Sift(_asked(stage).expression, places.channel(discard) if discard else places.filtered(stage))
        case Choice(cases=cases, otherwise=otherwise):
            names = [*(channel for channel, _ in cases), otherwise]
            return Choose(_asked(stage).expression, tuple(map(places.channel, names)))
        case To(channel=channel):
            return Send(places.channel(channel))
        case Balance(targets=targets) as node:
            return TakeTurns(node.limits(), tuple(map(places.channel, targets)))
        case Multicast(targets=targets):
            return Copy(tuple(map(places.channel, targets)), places.marks[COPIED, stage.title])
        case Tap(target=target):
            return Copy((places.channel(target), places.routes[stage.route]), places.marks[COPIED, stage.title])
        case Aggregate(invalid=invalid):
            gathering = gathered(plan)
            assert gathering is not None
            return Gather(gathering.keys, DEAD if invalid == DEAD_POLICY else places.filtered(stage))
        case Split() | SplitFields():
            return Part(places.filtered(stage), places.marks[COPIED, stage.title])
    return None


def _asked(stage: Stage) -> Question:
    asked = question(stage)
    assert asked is not None
    return asked

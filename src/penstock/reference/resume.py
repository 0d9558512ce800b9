"""Where each replayed dead letter goes on, and with which body."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import CannotReplay, did_you_mean
from penstock.failures import DECODE
from penstock.formats import Json, Malformed
from penstock.message import DeadLetter, Journey, Message
from penstock.patterns.aggregate import COMPLETED_BY, GROUP_SIZE
from penstock.patterns.redelivery import REDELIVERED
from penstock.patterns.split import Split, SplitFields
from penstock.plan.delivery import routes_before
from penstock.plan.plan import Entry, Plan, Scope, Stage
from penstock.plan.stopping import STOPPED
from penstock.reference.decode import decode
from penstock.reference.memory import forgotten_by
from penstock.schema import Array, Map, Struct, Type
from penstock.values import as_json

STEP, START = "step", "start"
_AT_START = "replay it from the start"


@dataclass(frozen=True)
class Entrance:
    """A message at the step where it goes on, or at the start if there is none.

    The `reader` makes its fields from `carrier`: the original bytes, or the JSON of a body that was rewritten.
    """

    message: Message
    reader: Entry
    carrier: bytes
    stage: Stage | None = None


def entrances(plan: Plan, letters: Iterable[DeadLetter], at: str = STEP, source: str | None = None) -> list[Entrance]:
    """Where dead letters go on, in the order of their source; raises for the first that cannot.

    At the start a message enters once, however many of its parts or copies died. `source` names the route whose
    source had them, where that cannot be told.
    """
    if at not in (STEP, START):
        raise CannotReplay(f"dead letters cannot go on at {at!r}", fix=did_you_mean(at, (STEP, START)))
    found: list[Entrance] = []
    begun: set[tuple[str, object, bytes]] = set()
    for number, letter in enumerate(sorted(letters, key=_place)):
        if at == STEP and letter.step != DECODE:
            found.append(_at_step(plan, letter, number))
            continue
        start = _at_start(plan, letter, source)
        identity = start.reader.route, start.message.position, start.carrier
        if identity not in begun:
            begun.add(identity)
            found.append(start)
    return found


def _place(letter: DeadLetter) -> tuple[str, int, int, str]:
    place = letter.message.position
    return place.topic, place.partition, place.offset, letter.message.id


def _again(letter: DeadLetter, order: tuple[Any, ...] = ()) -> Message:
    """The message with the marks of another try."""
    tried = letter.route, letter.attempt
    headers = {**letter.message.headers, REDELIVERED: str(letter.attempt)}
    return replace(letter.message, headers=headers, journey=Journey(order, letter.attempt + 1, tried=tried))


def _at_step(plan: Plan, letter: DeadLetter, number: int) -> Entrance:
    stage = next((s for s in plan.stages() if (s.route, s.node.name) == (letter.route, letter.step)), None)
    if stage is None:
        raise _refused(letter, f"the app has no step {letter.step!r} in route {letter.route!r} any more", _AT_START)
    if letter.error == STOPPED:
        stage = _after_split(plan, letter, stage)
    stage = forgotten_by(plan, letter, stage)
    scope, message = stage.scope, letter.message
    if scope.format is not None:
        reader, carrier = plan.reader(stage.route, scope), message.raw
    else:
        reader = Entry(stage.route, plan.entries[0].source, Json(scope.wanted), scope)
        carrier = _stored(letter, scope)
    fields = decode(reader, carrier)
    if isinstance(fields, Malformed):
        raise _refused(letter, f"its body does not fit the step: {fields.reason}", _AT_START)
    place = message.position
    order = 0, place.topic, place.partition, place.offset, number
    entering = replace(_again(letter, order), fields=fields, rewritten=not scope.raw)
    return Entrance(entering, reader, carrier, stage)


def _after_split(plan: Plan, letter: DeadLetter, stage: Stage) -> Stage:
    """Where a part that was stopped goes on: it is made already."""
    if not isinstance(stage.node, (Split, SplitFields)):
        raise _refused(letter, "a copy that was stopped does not say for which channel it was", _AT_START)
    stages = next(route.stages for route in plan.routes if route.name == stage.route)
    return stages[stages.index(stage) + 1]


def _stored(letter: DeadLetter, scope: Scope) -> bytes:
    """The body that the letter was left with, if it has all that the step reads now."""
    fields = letter.message.fields
    if fields is None:
        raise _refused(letter, "the body that came to the step was not kept", _AT_START)
    for path in _absent(fields, scope.wanted, ""):
        raise _refused(letter, f"the step reads {path!r} now, and nobody read it then", _AT_START)
    return json.dumps(fields, ensure_ascii=False, default=as_json).encode("utf-8", "surrogatepass")


def _absent(value: Any, kind: Type, path: str) -> Iterator[str]:
    """Fields of the schema that were not there, not even as null."""
    match kind:
        case Struct(fields) if isinstance(value, Mapping):
            for name, inner in fields:
                below = f"{path}.{name}" if path else name
                if name not in value:
                    yield below
                else:
                    yield from _absent(value[name], inner, below)
        case Array(element) if isinstance(value, list):
            for item in value:
                yield from _absent(item, element, f"{path}[]")
        case Map(inner) if isinstance(value, Mapping):
            for name, item in value.items():
                yield from _absent(item, inner, f"{path}.{name}")


def _at_start(plan: Plan, letter: DeadLetter, source: str | None) -> Entrance:
    message, headers = letter.message, letter.message.headers
    if letter.step != DECODE and COMPLETED_BY in headers and GROUP_SIZE in headers:
        raise _refused(letter, "an aggregator put it together, so it has no original", "replay it at its step")
    place = str(message.position)
    parent = message.lineage.parent if message.lineage else message.id
    identity = place if message.id.startswith(place) else parent
    entry = _origin(plan, letter, source)
    entering = replace(_again(letter), id=identity, lineage=None, fields=None, rewritten=False)
    return Entrance(entering, entry, message.raw)


def _origin(plan: Plan, letter: DeadLetter, source: str | None) -> Entry:
    """The source that a letter came from: the only one before the route where it died."""
    names = [entry.route for entry in plan.entries]
    if source is not None and source not in names:
        raise CannotReplay(f"no route named {source!r} has a source", fix=did_you_mean(source, names))
    route = next((route for route in plan.routes if route.name == letter.route), None)
    if route is None:
        raise _refused(letter, f"the app has no route {letter.route!r} any more", "put its body where a source looks")
    before = {other.name for other in routes_before(plan, route)}
    possible = [entry for entry in plan.entries if entry.route in before and source in (None, entry.route)]
    if len(possible) != 1:
        found = ", ".join(entry.route for entry in possible) or "none"
        raise _refused(letter, f"it may have come from more than one source: {found}" if possible else
                       f"nothing leads from {source!r} to route {letter.route!r}",
                       "say which route read it: --source ROUTE, or replay it at its step")  # fmt: skip
    return possible[0]


def _refused(letter: DeadLetter, what: str, fix: str) -> CannotReplay:
    return CannotReplay(f"message {letter.message.id} cannot go on at {letter.route}.{letter.step}: {what}", fix=fix)

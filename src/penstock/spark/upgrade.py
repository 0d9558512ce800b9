"""Check whether an app may go on at a checkpoint where another version of it stopped.

A record of the app, as far as its checkpoint depends on it, is written into the checkpoint. When a stream starts there
again, the app is compared with the record: most changes are only reported, but those that would lose or mix up messages
are refused.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping

import msgspec
import pyarrow as pa

from penstock import __version__
from penstock.durable import write_whole
from penstock.errors import ChangedApp, counted
from penstock.kernel.state.step import state_steps
from penstock.masking import masked
from penstock.patterns.aggregate import Aggregate
from penstock.patterns.idempotent import Idempotent
from penstock.patterns.key import keys_text
from penstock.patterns.node import Node
from penstock.patterns.resequence import Resequence
from penstock.plan.plan import Plan, Scope
from penstock.plan.waiting import undecided, waits
from penstock.spark.state.table import Contents, StateTable

FILE = "penstock-app.json"
NEW = "start with a new checkpoint"
NOTHING = Contents({}, {}, {})

Texts = dict[str, str]


class SourceRecord(msgspec.Struct, frozen=True):
    route: str
    kind: str
    text: str


class StateRecord(msgspec.Struct, frozen=True):
    """The record of one step with state; `payload` has the fields of messages that wait there, by their full names."""

    pattern: str
    key: str
    payload: Texts


class Record(msgspec.Struct, frozen=True):
    """The record of an app; `scopes` are the schemas of bodies that may wait for another try."""

    app: str
    started: str
    version: str
    sources: list[SourceRecord]
    steps: Texts
    state: dict[str, StateRecord]
    sinks: Texts
    redelivery: Texts
    scopes: list[str]


def record(plan: Plan, table: StateTable | None = None) -> Record:
    """The record of the app as it is now; with a table of state, also of the fields that its steps store."""
    steps = state_steps(plan, table.on_stop) if table is not None else []
    payloads = {step.title: dict(_fields("", list(step.algorithm.payload))) for step in steps}
    sinks = {outlet.channel: masked(f"{outlet.sink}, {outlet.delivery}") for outlet in plan.outlets}
    return Record(
        plan.name,
        time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        __version__,
        [SourceRecord(one.route, one.source.kind, f"{one.source}, {one.format.name}") for one in plan.entries],
        {stage.title: f"{stage.node.pattern}: {stage.node.detail()}" for stage in plan.stages()},
        {
            stage.title: StateRecord(stage.node.pattern, _key(stage.node), payloads.get(stage.title, {}))
            for stage in plan.stages()
            if stage.node.stateful
        },
        {**sinks, "dead letters": masked(str(plan.dead_letters))},
        {route.name: route.redelivery.detail() for route in plan.routes if route.redelivery is not None},
        [_body(scope) for scope in _waiting_scopes(plan)] if waits(plan) else [],
    )


def _key(node: Node) -> str:
    match node:
        case Aggregate():
            return keys_text(node.by) or "the parent of the parts"
        case Idempotent():
            return keys_text(node.key) or "the id"
        case Resequence():
            return f"{keys_text((node.sequence,))} within {keys_text(node.by) or 'all'}"
    return ""


def _body(scope: Scope) -> str:
    """The fields that are read of a body, and its format if it is an original one."""
    return scope.wanted.ddl() if scope.format is None else f"{scope.format.name}: {scope.wanted.ddl()}"


def _waiting_scopes(plan: Plan) -> list[Scope]:
    """Every body that a waiting message may have."""
    found = [scope for stage in plan.stages() for scope in (stage.scope, stage.after)]
    found += [inflow.scope for route in plan.routes for inflow in route.inflows]
    return sorted({scope.number: scope for scope in found}.values(), key=lambda scope: scope.number)


def _fields(above: str, fields: list[pa.Field]) -> Iterator[tuple[str, str]]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _fields(f"{above}{field.name}.", list(field.type))
        else:
            yield f"{above}{field.name}", str(field.type)


def check_and_record(place: str, plan: Plan, now: Record, contents: Contents) -> str | None:
    """Compare the app with the record in the checkpoint at `place`, and write the new record there.

    Returns the changes as one line; raises if something changed that must not.
    """
    path = os.path.join(place, FILE)
    before = _read(path) if os.path.exists(os.path.join(place, "metadata")) else None
    said = None
    if before is not None:
        for what, fix in _refused(before, now, plan, contents):
            raise ChangedApp(f"{what}; the checkpoint {place} is of the app as it was at {before.started}", fix=fix)
        changes = list(_changes(before, now))
        said = f"changed since the last run ({before.started}): {'; '.join(changes)}" if changes else None
    os.makedirs(place, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(now)) + b"\n")
    return said


def check_same(place: str, plan: Plan, contents: Contents) -> None:
    """Raise what would keep a stream of this app from going on here; for replays, which only add to its state."""
    before = _read(os.path.join(place, FILE))
    if before is None:
        return
    today = record(plan)
    # What steps keep of a message is compared where it is read: state files have their own schema.
    state = {
        title: msgspec.structs.replace(one, payload=before.state[title].payload) if title in before.state else one
        for title, one in today.state.items()
    }
    for what, fix in _refused(before, msgspec.structs.replace(today, state=state), plan, contents):
        raise ChangedApp(f"{what}; the checkpoint {place} is of the app as it was at {before.started}", fix=fix)


def check_kept(place: str, contents: Contents, title: str, payload: pa.Schema) -> None:
    """Raise if a step holds messages with other fields than those that a replay would add."""
    before = _read(os.path.join(place, FILE))
    kept = before.state[title].payload if before is not None and title in before.state else {}
    added, held = dict(_fields("", list(payload))), contents.messages.get(title, 0)
    if kept and held and kept != added:
        raise ChangedApp(
            f"step {title!r} of the stream at {place} holds {counted(held, 'message')}, and dead letters would be"
            f" stored beside them with other fields: {_difference(kept, added)}",
            fix="replay when the step holds nothing, or without the checkpoint",
        )


def _read(path: str) -> Record | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Record)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, json.JSONDecodeError) as error:
        raise ChangedApp(f"cannot read {path}: {error}", fix=f"restore it, or {NEW}") from None


def _refused(before: Record, now: Record, plan: Plan, contents: Contents) -> Iterator[tuple[str, str]]:
    yield from _sources(before, now)
    for title, count in contents.messages.items():
        yield from _held(title, count, before, now)
    for title, count in contents.rows.items():
        yield from _remembered(title, count, before, now)
    yield from _waiting(before, now, plan, contents)
    # With state a stream has one more source, that of time; Spark knows sources by their number.
    kept, keeps = (bool(record.state or record.scopes) for record in (before, now))
    if keeps and not kept:
        yield "the app keeps state now, and kept none", f"start the app as it was, or {NEW}"
    if kept and not keeps:
        yield "the app keeps no state now, and kept some", f"start the app as it was, or {NEW}"


def _sources(before: Record, now: Record) -> Iterator[tuple[str, str]]:
    """Sources must stay in their places, because Spark keeps the position of each by its number."""
    old, new = ({source.route: source.kind for source in record.sources} for record in (before, now))
    again = f"or {NEW}"
    for route, kind in old.items():
        if route not in new:
            yield f"route {route!r}, which read {kind}, has no source now", f"name it {route!r} as before, {again}"
        elif new[route] != kind:
            yield f"route {route!r} reads {new[route]} now, and read {kind}", f"read {kind} as before, {again}"
    added = [route for route in new if route not in old]
    if added:
        yield f"route {added[0]!r} is a new source", f"give it an app of its own, {again}"
    if list(old) != list(new):
        yield f"the sources are {', '.join(new)}, and were {', '.join(old)}", f"give the routes in that order, {again}"


def _held(title: str, count: int, before: Record, now: Record) -> Iterator[tuple[str, str]]:
    """Messages in the state of a step: the step must still be there and be able to read them."""
    old, new = before.state.get(title), now.state.get(title)
    holds = f"step {title!r} holds {counted(count, 'message')}"
    drain = f'start the app as it was with on_stop="flush" and stop it, which empties the step, or {NEW}'
    if new is None or (old is not None and old.pattern != new.pattern):
        kind = f" {_article(old.pattern)}" if old is not None else ""
        yield f"{holds} and is gone", f"keep{kind} under that name, or {drain}"
    elif old is not None and old.payload != new.payload:
        difference = _difference(old.payload, new.payload)
        yield f"{holds}, stored with other fields than it keeps now: {difference}", drain


def _remembered(title: str, count: int, before: Record, now: Record) -> Iterator[tuple[str, str]]:
    """Keys in the state of a step: another key would be mixed up with them, and under a new name they would be lost."""
    old, new = before.state.get(title), now.state.get(title)
    if old is None:
        return
    if new is not None and old.key != new.key:
        yield (
            f"step {title!r} remembers up to {count:,} keys by {old.key}, and goes by {new.key} now",
            f"go by {old.key} as before, name the new step differently, or {NEW}",
        )
    fresh = [name for name, one in now.state.items() if name not in before.state and one.pattern == old.pattern]
    if new is None and fresh:
        yield (
            f"step {title!r} remembers up to {count:,} keys, and is {fresh[0]!r} now, which remembers none",
            f"name it {title.rpartition('.')[2]!r} in route {title.rpartition('.')[0]!r} as before, or {NEW}",
        )


def _waiting(before: Record, now: Record, plan: Plan, contents: Contents) -> Iterator[tuple[str, str]]:
    """Messages that wait for another try: their step must take them back, with the body that they have."""
    receivers = undecided(plan)
    taken = {
        stage.title
        for route in plan.routes
        for stage in route.stages
        if route.waits or any(one.title in receivers for one in route.stages)
    }
    drain = f"let the app as it was run until nothing waits, or {NEW}"
    for title, count in contents.waiting.items():
        waits = f"{counted(count, 'message')} will be tried again at step {title!r}"
        if title not in now.steps:
            yield f"{waits}, which is gone", f"keep the step under that name, or {drain}"
        elif title not in taken:
            at_once = title.rpartition(".")[0] in now.redelivery
            why = "tries again only at once now" if at_once else "has no redelivery now"
            yield f"{waits}, whose route {why}", f"keep on_error(...), or {drain}"
        elif before.scopes != now.scopes:
            yield f"{waits}, with bodies of other fields than steps read now", drain


def _changes(before: Record, now: Record) -> Iterator[str]:
    """All other changes, in few words."""
    if before.app != now.app:
        yield f"app {before.app} is {now.app}"
    sources = ({source.route: source.text for source in record.sources} for record in (before, now))
    yield from _listed("source", *sources)
    yield from _listed("step", before.steps, now.steps)
    yield from _listed("redelivery of", before.redelivery, now.redelivery)
    yield from _listed("sink", before.sinks, now.sinks)


def _listed(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    kinds = {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [name for name in new if name in old and new[name] != old[name]],
    }
    for verb, names in kinds.items():
        if names:
            yield f"{what} {', '.join(names)} {verb}"


def _difference(old: Texts, new: Texts) -> str:
    marks = [f"{name} {kind} is new" for name, kind in new.items() if name not in old]
    marks += [f"{name} is gone" for name in old if name not in new]
    marks += [f"{name} is {kind}, was {old[name]}" for name, kind in new.items() if name in old and old[name] != kind]
    return ", ".join(marks[:5]) + (", ..." if len(marks) > 5 else "")


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"

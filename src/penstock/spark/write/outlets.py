"""How each sink is written: the style and place of its files, taken from the plan before a run; pickled to tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.delivery import AT_LEAST_ONCE, BEST_EFFORT, EXACTLY_ONCE, includes
from penstock.endpoints.base import Sink, Source
from penstock.endpoints.files import ADDED, OVERWRITE, Files, Parquet, Table, root_of
from penstock.endpoints.kafka import KafkaTopic
from penstock.endpoints.log import Log
from penstock.endpoints.memory import Memory
from penstock.endpoints.postgres import Postgres, fits
from penstock.endpoints.simple import Console, Void
from penstock.envelope import DEAD
from penstock.errors import BadEndpoint, BadSchema, did_you_mean
from penstock.formats import Format, Json
from penstock.plan.plan import Outlet, Plan
from penstock.schema import EMPTY, VARIANT, DecimalType, Scalar, Struct, holds, merge

LINES, DOCUMENT, CSV, PARQUET, ROWS, FRAMES, KEEP = "lines", "document", "csv", "parquet", "rows", "frames", "keep"
ROOM = "room"
DEAD_LETTERS = "dead letters"
POSITION = "_position"
"""The column of a table on a server by which its rows are in order."""


@dataclass(frozen=True)
class Target:
    """One sink: the number of its place, the style of its files, and where they are published.

    Files go to a directory, ROWS to a table on a server, FRAMES to a topic of a log or of Kafka, which has
    `partitions`, KEEP only to the driver, and ROOM to the waiting room.
    """

    place: int
    channel: str
    style: str
    directory: str | None
    format: Format
    overwrite: bool = False
    rows: int | None = None
    dead: bool = False
    table: Postgres | None = None
    delivery: str = BEST_EFFORT
    topic: Log | KafkaTopic | None = None
    partitions: int = 1
    exact: Struct | None = None
    """The fields of bodies that arrive as JSON with exact numbers in it, which would be doubles to most readers."""

    @property
    def called(self) -> str:
        return "the dead-letter channel" if self.dead else f"channel {self.channel!r}"

    @property
    def name(self) -> str:
        """The name of the sink in intents and markers."""
        return "_dead_letters" if self.dead else self.channel

    @property
    def lasts(self) -> bool:
        """Whether the files have to survive a power failure."""
        return self.style != KEEP and includes(self.delivery, AT_LEAST_ONCE)

    @property
    def ending(self) -> str:
        names = {PARQUET: "parquet", ROWS: "parquet", FRAMES: "frames", KEEP: "arrow", CSV: "csv", DOCUMENT: "xml",
                 ROOM: "arrow"}  # fmt: skip
        return names.get(self.style) or ("jsonl" if self.format.name == "json" else "txt")

    @property
    def wants_meta(self) -> bool:
        keeps = self.topic is not None and self.topic.headers
        return self.dead or keeps or self.style in (PARQUET, ROWS, KEEP)


def places_of(plan: Plan) -> dict[str, int]:
    """The place of every sink, by its channel."""
    return {outlet.channel: place for place, outlet in enumerate(plan.outlets)}


def targets(plan: Plan) -> dict[int, Target]:
    """The sinks that are written, by place; not Void, which is only counted."""
    found = {place: _target(outlet, place) for place, outlet in enumerate(plan.outlets)}
    found[DEAD] = _dead_target(plan.dead_letters, plan.dead_delivery)
    written = {place: target for place, target in found.items() if target is not None}
    _check(plan, list(written.values()))
    return written


def _check(plan: Plan, written: list[Target]) -> None:
    """Raise what would lose files or make them unreadable, before Spark starts."""
    owners = {_place(entry.source): f"route {entry.route!r} reads" for entry in plan.entries if _place(entry.source)}
    topics = {_topic(entry.source): entry for entry in plan.entries if isinstance(entry.source, (Log, KafkaTopic))}
    for target in written:
        _check_columns(target)
        if target.topic is not None and (reader := topics.get(_topic(target.topic))) is not None:
            raise BadEndpoint(f"route {reader.route!r} reads {target.topic}, and {target.called} writes to it too",
                              fix="give them different topics")  # fmt: skip
        if target.directory is None:
            continue
        directory, writes = os.path.realpath(target.directory), f"{target.called} writes to"
        if directory in owners:
            raise BadEndpoint(f"{owners[directory]} {target.directory}, and {writes} it too",
                              fix="give each its own directory, or send the messages to one channel")  # fmt: skip
        if os.path.isfile(directory):
            raise BadEndpoint(f"{writes} {target.directory}, which is a file", fix="name a directory")
        owners[directory] = writes


def _check_columns(target: Target) -> None:
    if target.topic is not None and target.topic.key is not None:
        _check_key(target, target.topic.key)
    if target.style not in (PARQUET, ROWS) or target.dead:
        return
    names = target.format.schema.names
    added = (*ADDED, POSITION) if target.style == ROWS else ADDED
    rename = "translate the field to another name"
    for name in names:
        if name in added:
            raise BadSchema(f"{target.called} writes columns, and {name!r} is one that Penstock adds itself",
                            fix=rename)  # fmt: skip
        if target.table is not None and not fits(name):
            raise BadSchema(
                f"{target.called} writes a column {name!r}: PostgreSQL has no names that long", fix=rename
            )
    for name in target.table.key if target.table is not None else ():
        kind = target.format.schema.get(name)
        if not isinstance(kind, Scalar) or kind == VARIANT:
            what = f"has no field {name!r}" if kind is None else f"has {name!r} as {kind}"
            raise BadSchema(f"the key of {target.table} is {name!r}, and {target.called} {what}",
                            fix=did_you_mean(name, names))  # fmt: skip


def _check_key(target: Target, name: str) -> None:
    kind = target.format.schema.get(name)
    if target.dead or not isinstance(kind, Scalar) or kind == VARIANT:
        what = f"has no field {name!r}" if kind is None or target.dead else f"has {name!r} as {kind}"
        raise BadSchema(f"the key of {target.topic} is {name!r}, and {target.called} {what}",
                        fix=did_you_mean(name, target.format.schema.names))  # fmt: skip


def _topic(end: Log | KafkaTopic) -> tuple[str, str]:
    if isinstance(end, KafkaTopic):
        return end.topic, f"kafka {end.servers}"
    return end.topic, end.at if end.is_served else os.path.realpath(end.at)


def _place(source: Source) -> str | None:
    """The directory that a source reads."""
    path = str(getattr(source, "path", ""))
    return os.path.realpath(root_of(os.path.abspath(path))) if path else None


def promised(found: Mapping[int, Target]) -> dict[int, Target]:
    """The sinks of a replay, which are exactly once whatever the source: dead letters can be read again."""
    return {
        place: target if target.style == KEEP else replace(target, delivery=EXACTLY_ONCE)
        for place, target in found.items()
    }


def _target(outlet: Outlet, place: int) -> Target | None:
    target = _styled(outlet.sink, place, outlet.channel, _arriving_format(outlet))
    if target is None:
        return None
    fields = _fields(outlet)
    is_exact = holds(fields, lambda kind: isinstance(kind, DecimalType))
    return replace(target, delivery=outlet.delivery, exact=fields if is_exact else None)


def _dead_target(sink: Sink, delivery: str) -> Target | None:
    target = _styled(sink, DEAD, DEAD_LETTERS, Json("id STRING"))
    if target is None:
        return None
    style = LINES if target.style in (CSV, DOCUMENT) else target.style
    if target.table is not None and target.table.key:
        raise BadEndpoint("dead letters cannot replace each other", fix="leave out mode and key of their table")
    return replace(target, style=style, dead=True, delivery=delivery)


def _styled(sink: Sink, place: int, channel: str, arriving: Format) -> Target | None:
    match sink:
        case Void():
            return None
        case Files(path, format, _, mode):
            written = format or arriving
            styles = {"csv": CSV, "xml": DOCUMENT}
            return Target(
                place, channel, styles.get(written.name, LINES), os.path.abspath(path), written, mode == OVERWRITE
            )
        case Parquet(path, _, mode):
            return Target(place, channel, PARQUET, os.path.abspath(path), arriving, mode == OVERWRITE)
        case Table():
            return _styled(sink.as_parquet(), place, channel, arriving)
        case Memory(_, format):
            return Target(place, channel, KEEP, None, format or arriving)
        case Console(rows):
            return Target(place, channel, KEEP, None, arriving, rows=rows)
        case Log() | KafkaTopic():
            return Target(place, channel, FRAMES, None, sink.format or arriving, topic=sink)
        case Postgres():
            return Target(place, channel, ROWS, None, arriving, table=sink)
    raise BadEndpoint(
        f"Spark cannot write to {sink}",
        fix="use Files, Log, KafkaTopic, Parquet, Table, Postgres, Memory, Console or Void",
    )


def _arriving_format(outlet: Outlet) -> Format:
    """The source's own format where nothing rewrote the body; JSON of all fields otherwise."""
    formats = {inflow.scope.format for inflow in outlet.inflows}
    only = next(iter(formats)) if len(formats) == 1 else None
    if only is not None and not outlet.sink.columns:
        return only
    return Json(_fields(outlet))


def _fields(outlet: Outlet) -> Struct:
    schema: Struct = EMPTY
    for inflow in outlet.inflows:
        schema = merge(schema, inflow.scope.schema)
    return schema

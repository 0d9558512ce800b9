"""The plan as stable text: what people read, what documentation shows, what snapshot tests compare."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from penstock.budget import budget_text
from penstock.endpoints.files import OVERWRITE
from penstock.expr.text import to_text
from penstock.patterns.node import DEAD
from penstock.plan.plan import Entry, Outlet, Plan, PlannedRoute, Stage
from penstock.plan.used import is_row_by_row
from penstock.plan.waiting import undecided
from penstock.schema import Struct

Row = tuple[str, ...]


def explain(plan: Plan) -> str:
    """One line per source, route, step and sink; the same text for the same app everywhere."""
    entries = {entry.route: entry for entry in plan.entries}
    widths = _widths([_step(stage)[:-1] for stage in plan.stages()])
    blocks = [f"app {plan.name}"]
    for route in plan.routes:
        lines = [_one_line(_head(route, entries.get(route.name)))]
        lines += ["  " + _one_line(_columns(_step(stage), widths)) for stage in route.stages]
        blocks.append("\n".join(lines))
    blocks.append("\n".join(_ends(plan)))
    blocks.append("\n".join(_stages(plan)))
    return "\n\n".join(blocks) + "\n"


def _head(route: PlannedRoute, entry: Entry | None) -> str:
    again = f"  | on error: {route.redelivery.detail()}" if route.redelivery is not None else ""
    return _start(route, entry) + again


def _start(route: PlannedRoute, entry: Entry | None) -> str:
    if entry is not None:
        return f"{route.name} := Source[{entry.source}, {entry.format.name}]  {_reads(entry)}"
    channels = ", ".join(dict.fromkeys(inflow.channel for inflow in route.inflows))
    merged = f"  bodies merged: {route.scope.schema.ddl()}" if route.merges else ""
    return f"{route.name} := Channel[{channels}]{merged}"


def _reads(entry: Entry) -> str:
    """The fields that are decoded; the rest of the body is carried along in its original bytes."""
    fields = [Struct((field,)).ddl() for field in entry.scope.wanted.fields]
    return f"reads {', '.join([*fields, *map(to_text, entry.paths)]) or 'nothing of the body'}"


def _step(stage: Stage) -> Row:
    node = stage.node
    marks = [node.detail()]
    if getattr(node, "missing", None) == DEAD and "else dead" not in marks[0]:
        marks.append("missing is a dead letter")
    if node.stateful:
        marks.append("keeps state")
    if is_row_by_row(stage):
        marks.append("row by row: looks into a VARIANT")
    if node.rewrites:
        # Only what somebody downstream reads: the rest of the new body is never computed.
        marks.append(f"body rewritten: {stage.after.wanted.ddl()}".removesuffix(": "))
    shape = f"channels {node.channels}", f"messages {node.messages}"
    return node.name, node.pattern, node.template, *shape, "  | ".join(mark for mark in marks if mark)


def _ends(plan: Plan) -> Iterator[str]:
    rows = [_sink(outlet, plan) for outlet in plan.outlets]
    widths = _widths([row[:-1] for row in rows])
    yield "sinks" if rows else "no sinks"
    for row in rows:
        yield "  " + _one_line(_columns(row, widths))
    if plan.error_budget is not None:
        yield f"error budget := {budget_text(plan.error_budget)} of a batch, or nothing of it is published"
    yield _one_line(f"dead letters := {plan.dead_letters}  | {plan.dead_delivery}: {plan.dead_letters.guarantee}")


def _stages(plan: Plan) -> Iterator[str]:
    """Where messages leave a Spark task for another one: only at steps where messages of one key must meet."""
    yield "stages on Spark"
    routes = ", ".join(entry.route for entry in plan.entries)
    yield _one_line(f"  1 := read {routes}, all steps as far as messages come")
    remembering = [stage.title for stage in plan.stages() if stage.node.stateful]
    for number, title in enumerate(remembering, 2):
        yield _one_line(f"  {number} := shuffle to the key at {title}, that step and all behind it")
    for route in plan.routes:
        if route.waits:
            yield _one_line(f"  later batches := messages of route {route.name} that wait for another try")
    for title in sorted(undecided(plan)):
        yield _one_line(f"  later batches := messages at {title} that wait for the fate of the first with their key")


def _sink(outlet: Outlet, plan: Plan) -> Row:
    replaced = "  | a new run replaces earlier ones" if getattr(outlet.sink, "mode", "") == OVERWRITE else ""
    sets_headers = any(stage.node.sets_headers for stage in plan.stages())
    bare = "  | headers stay behind" if sets_headers and getattr(outlet.sink, "headers", None) is False else ""
    return (
        f"{outlet.channel} := {outlet.sink}",
        f"{_bodies(outlet)}{bare}  | {outlet.delivery}: {outlet.sink.guarantee}{replaced}",
    )


def _bodies(outlet: Outlet) -> str:
    if outlet.sink.columns:
        return "fields as columns"
    raw = [inflow.scope.raw for inflow in outlet.inflows]
    asked = getattr(outlet.sink, "format", None)
    if asked is not None:
        return f"bodies as {asked.name}"
    if all(raw):
        return "bodies as they came"
    return "rewritten bodies as json" if not any(raw) else "bodies as they came, rewritten ones as json"


def _widths(rows: list[Row]) -> tuple[int, ...]:
    return tuple(max(map(len, column)) for column in zip(*rows, strict=True))


def _columns(row: Row, widths: tuple[int, ...]) -> str:
    padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
    return "  ".join(chain(padded, row[len(widths) :])).rstrip()


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").rstrip()

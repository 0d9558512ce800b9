"""The plan as stable text: what people read, what documentation shows, what snapshot tests compare."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from penstock.budget import budget_text
from penstock.endpoints.files import OVERWRITE
from penstock.expr.text import to_text
from penstock.patterns.node import DEAD
from penstock.plan.plan import Entry, Outlet, Plan, PlannedRoute, Stage
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
    """What is decoded and what of it goes on; everything else of the body is carried along as it came."""
    paths = [to_text(path) for path in entry.paths]
    read = [*_fields(entry.parsed), *paths]
    if not read:
        return "reads nothing of the body"
    steps = ", ".join(answer.step for answer in entry.answers)
    made = ("writes the parts" if entry.written.parted else "writes the new body") if entry.written else ""
    done = [*([f"answers {steps}"] if steps else []), *([made] if made else [])]
    kept = ", ".join([*_fields(entry.scope.wanted), *paths]) or "nothing"
    return f"reads {', '.join(read)}" + (f"  | {', '.join(done)}, passes on {kept}" if done else "")


def _fields(schema: Struct) -> list[str]:
    return [Struct((field,)).ddl() for field in schema.fields]


def _step(stage: Stage) -> Row:
    node = stage.node
    marks = [node.detail()]
    if getattr(node, "missing", None) == DEAD and "else dead" not in marks[0]:
        marks.append("missing is a dead letter")
    if node.stateful:
        marks.append("keeps state")
    if node.rewrites:
        # Only what somebody downstream reads: the rest of the new body is never computed.
        marks.append(f"body rewritten: {stage.after.wanted.ddl()}".removesuffix(": "))
    shape = f"channels {node.channels}", f"messages {node.messages}"
    return node.name, node.pattern, node.template, *shape, "  | ".join(mark for mark in marks if mark)


def _ends(plan: Plan) -> Iterator[str]:
    rows = [_sink(outlet) for outlet in plan.outlets]
    widths = _widths([row[:-1] for row in rows])
    yield "sinks" if rows else "no sinks"
    for row in rows:
        yield "  " + _one_line(_columns(row, widths))
    if plan.error_budget is not None:
        yield f"error budget := {budget_text(plan.error_budget)} of a batch, or nothing of it is published"
    yield _one_line(f"dead letters := {plan.dead_letters}  | {plan.dead_delivery}: {plan.dead_letters.guarantee}")


def _sink(outlet: Outlet) -> Row:
    replaced = "  | a new run replaces earlier ones" if getattr(outlet.sink, "mode", "") == OVERWRITE else ""
    return (
        f"{outlet.channel} := {outlet.sink}",
        f"{_bodies(outlet)}  | {outlet.delivery}: {outlet.sink.guarantee}{replaced}",
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

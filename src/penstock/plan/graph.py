"""The plan as boxes and arrows: what every picture of it is drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.patterns.to import To
from penstock.plan.plan import Plan, PlannedRoute

SOURCE, STEP, SINK, REDELIVERY, DEAD_LETTERS = "source", "step", "sink", "redelivery", "dead letters"
APART = (REDELIVERY, DEAD_LETTERS)


@dataclass(frozen=True, slots=True)
class Box:
    """`kind` chooses the shape, `title` is the pattern or endpoint, `name` says which one, `note` a number.

    `icon` is the picture of a pattern; one that `forks` sends messages to one or more of several channels.
    """

    key: str
    kind: str
    title: str
    name: str
    detail: str = ""
    note: str = ""
    icon: str = ""
    forks: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """`channel` is empty inside a route."""

    start: str
    end: str
    channel: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


def graph(plan: Plan, counts: Mapping[str, Any] | None = None) -> Graph:
    """Boxes for sources, steps and sinks. A `to` step is not a box but an arrow: it is only a channel.

    What concerns a whole route or app, redelivery and dead letters, stands apart, without arrows.

    `counts` is a run's `Summary.as_dict()`; what it does not count is drawn without a number.
    """
    boxes = [Box(f"source {entry.route}", SOURCE, str(entry.source), entry.route, entry.scope.wanted.ddl())
             for entry in plan.entries]  # fmt: skip
    for stage in plan.stages():
        if not isinstance(stage.node, To):
            node = stage.node
            boxes.append(Box(stage.title, STEP, node.pattern, stage.title, node.detail(), icon=node.icon,
                             forks=node.channels == "1:n"))  # fmt: skip
    boxes += [Box(f"sink {outlet.channel}", SINK, str(outlet.sink), outlet.channel, outlet.sink.guarantee)
              for outlet in plan.outlets]  # fmt: skip
    boxes += [Box(f"redelivery {route.name}", REDELIVERY, route.redelivery.pattern, route.name,
                  route.redelivery.detail(), icon=route.redelivery.icon)
              for route in plan.routes if route.redelivery is not None]  # fmt: skip
    boxes.append(Box("dead letters", DEAD_LETTERS, "dead letters", str(plan.dead_letters), "from any step that fails"))
    edges = tuple(edge for route in plan.routes for edge in _edges(plan, route))
    return _counted(Graph(tuple(boxes), edges), counts or {})


def _edges(plan: Plan, route: PlannedRoute) -> Iterator[Edge]:
    """The arrows that leave the boxes of a route; what comes from other routes is drawn by them."""
    reads = any(entry.route == route.name for entry in plan.entries)
    here = f"source {route.name}" if reads else ""
    for stage in route.stages:
        if isinstance(stage.node, To):
            if here:
                yield Edge(here, _target(plan, stage.node.channel), stage.node.channel)
            return
        if here:
            yield Edge(here, stage.title)
        here = stage.title
        yield from (Edge(here, _target(plan, channel), channel) for channel in dict.fromkeys(stage.node.sends_to()))


def _target(plan: Plan, channel: str) -> str:
    """The box that reads a channel. A route that only sends on has none: the arrow passes through it."""
    reader = plan.readers.get(channel)
    if reader is None:
        return f"sink {channel}"
    first = plan.route(reader).stages[0]
    return _target(plan, first.node.channel) if isinstance(first.node, To) else first.title


def _counted(drawn: Graph, counts: Mapping[str, Any]) -> Graph:
    if not counts:
        return drawn
    sources = sum(box.kind == SOURCE for box in drawn.boxes)
    arrows = Counter(edge.end for edge in drawn.edges)
    delivered, steps = counts.get("delivered", {}), counts.get("steps", {})

    def note(box: Box) -> str:
        match box.kind:
            case "source" if sources == 1 and "received" in counts:
                return f"{counts['received']:,}"
            case "step":
                return _step_note(box.name, counts)
            case "sink" if box.name in delivered and arrows[box.key] > 1:
                return f"{delivered[box.name]:,}"
            case "dead letters" if "dead" in counts:
                return f"{counts['dead']:,}"
        return ""

    def on_arrow(edge: Edge) -> str:
        if arrows[edge.end] > 1:
            return ""
        if edge.end in steps:
            return f"{steps[edge.end]['in']:,}"
        channel = edge.end.removeprefix("sink ")
        return f"{delivered[channel]:,}" if edge.end.startswith("sink ") and channel in delivered else ""

    boxes = tuple(replace(box, note=note(box)) for box in drawn.boxes)
    return Graph(boxes, tuple(replace(edge, note=on_arrow(edge)) for edge in drawn.edges))


def _step_note(title: str, counts: Mapping[str, Any]) -> str:
    """How many messages did not go on; zero is shown where the step may filter."""
    step = counts.get("steps", {}).get(title, {})
    filtered, waiting = counts.get("filtered", {}), counts.get("waiting", {})
    marks = [f"{filtered[title]:,} filtered"] if title in filtered else []
    marks += [f"{step['dead']:,} dead"] if step.get("dead") else []
    marks += [f"{waiting[title]:,} waiting"] if waiting.get(title) else []
    return ", ".join(marks)

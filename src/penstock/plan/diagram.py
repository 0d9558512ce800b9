"""The plan as a Mermaid flowchart, which GitHub and most documentation tools draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.plan.graph import DEAD_LETTERS, REDELIVERY, SINK, SOURCE, STEP, Box, Edge, graph
from penstock.plan.plan import Plan

_STYLES = (
    "classDef source fill:#e8f1fb,stroke:#2f6db3,color:#12314f",
    "classDef step fill:#ffffff,stroke:#555555,color:#222222",
    "classDef sink fill:#eaf6ec,stroke:#3a8a4d,color:#173d20",
    "classDef dead fill:#fdecea,stroke:#b3392f,color:#5c1a15,stroke-dasharray:4 3",
)


def mermaid(plan: Plan, counts: Mapping[str, Any] | None = None) -> str:
    """The flowchart; `counts` is a run's `Summary.as_dict()`."""
    drawn = graph(plan, counts)
    keys = {box.key: f"n{index}" for index, box in enumerate(drawn.boxes)}
    lines = ["flowchart LR"]
    lines += [f"  {keys[box.key]}{_shape(box)}:::{_style(box)}" for box in drawn.boxes]
    lines += [f"  {keys[edge.start]} -->{_label(edge)} {keys[edge.end]}" for edge in drawn.edges]
    return "\n".join([*lines, *(f"  {style}" for style in _STYLES)]) + "\n"


def _shape(box: Box) -> str:
    lines = (f"<b>{_escaped(box.title)}</b>", _escaped(box.name), _escaped(box.note))
    text = "<br/>".join(line for line in lines if line)
    if box.kind == SOURCE:
        return f'(["{text}"])'
    if box.kind in (SINK, DEAD_LETTERS):
        return f'[("{text}")]'
    return f'{{{{"{text}"}}}}' if box.forks else f'["{text}"]'


def _style(box: Box) -> str:
    return {DEAD_LETTERS: "dead", REDELIVERY: STEP}.get(box.kind, box.kind)


def _label(edge: Edge) -> str:
    text = ": ".join(part for part in (edge.channel, edge.note) if part)
    return f'|"{_escaped(text)}"|' if text else ""


def _escaped(text: str) -> str:
    """Mermaid reads `#name;` where HTML has `&name;`."""
    for character, code in (("#", "#35;"), ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, code)
    return " ".join(text.split())

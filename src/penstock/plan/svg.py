"""The plan as a picture: one SVG file, no fonts, scripts or links of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape

from penstock.patterns.drawing import HEIGHT, WIDTH
from penstock.plan import glyphs
from penstock.plan.graph import APART, DEAD_LETTERS, REDELIVERY, SINK, SOURCE, STEP, Box, Edge, Graph, graph
from penstock.plan.layout import Key, Layout, layout
from penstock.plan.plan import Plan

Point = tuple[float, float]

_MARGIN, _TITLE, _ROW, _GAP = 24, 34, 118, 46
_LETTER, _SMALL = 6.4, 5.8
_LONGEST = 26
_STYLE = """
text { font-family: Helvetica, Arial, sans-serif; font-size: 12px; fill: #222 }
.app { font-size: 15px; font-weight: bold } .name { font-size: 11px; fill: #666 }
.note { font-size: 11px; font-weight: bold; fill: #8a4b08 } .sign { font-size: 15px; font-weight: bold; fill: #444 }
.frame { stroke-width: 1.4 } .frame.step { fill: #fffdf5; stroke: #8a8572 }
.frame.source { fill: #e8f1fb; stroke: #2f6db3 } .frame.sink { fill: #eaf6ec; stroke: #3a8a4d }
.frame.dead { fill: #fdecea; stroke: #b3392f; stroke-dasharray: 4 3 }
.glyph { fill: none; stroke: #444; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round }
.glyph text { stroke: none } .glyph .full { fill: #8a8572 } .glyph .faint { stroke-dasharray: 2 3 }
.glyph .cross { stroke: #b3392f; stroke-width: 2.4 } .edge { fill: none; stroke: #555; stroke-width: 1.4 }
.pipe { fill: #f1f1f1; stroke: #8a8a8a } .channel { font-size: 11px; fill: #333 }
"""
_MARKERS = (
    '<marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0,0.5 L8,4 L0,7.5 Z" fill="#555"/></marker>'
    '<marker id="small" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="4.5" markerHeight="4.5" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 Z" fill="#444"/></marker>'
)


def svg(plan: Plan, counts: Mapping[str, Any] | None = None) -> str:
    """The picture; `counts` is a run's `Summary.as_dict()`, drawn on the arrows and under the boxes."""
    drawn = graph(plan, counts)
    apart = [box.key for box in drawn.boxes if box.kind in APART]
    linked = [box.key for box in drawn.boxes if box.kind not in APART]
    placed = layout(linked, [(edge.start, edge.end) for edge in drawn.edges], apart)
    return _Picture(plan.name, drawn, placed).text()


class _Picture:
    def __init__(self, title: str, drawn: Graph, placed: Layout) -> None:
        self.title, self.drawn, self.placed = title, drawn, placed
        self.boxes = {box.key: box for box in drawn.boxes}
        self.level = {key: level for level, layer in enumerate(placed.layers) for key in layer}
        self.halves = [max((_box_width(self.boxes[str(key)]) for key in layer if key in self.boxes), default=0.0) / 2
                       for layer in placed.layers]  # fmt: skip
        self.columns, self.width = self._columns()
        self.height = _TITLE + 2 * _MARGIN + (max(placed.rows.values(), default=0) + 1) * _ROW - 16

    def _columns(self) -> tuple[list[float], float]:
        """The middle of each layer, and where the last one ends."""
        gaps: dict[int, float] = defaultdict(lambda: float(_GAP))
        for edge in self.drawn.edges:
            gaps[self.level[edge.start]] = max(gaps[self.level[edge.start]], _pipe_width(edge) + 44)
        middles: list[float] = []
        at = float(_MARGIN)
        for level, half in enumerate(self.halves):
            middles.append(at + half)
            # Captions may be wider than the box that arrows leave from: only the rest of the gap is needed.
            at += 2 * half + max(36.0, gaps[level] - half + WIDTH / 2)
        return middles, max(at - gaps[len(middles) - 1] + _GAP, _MARGIN * 2 + len(self.title) * 9)

    def point(self, key: Key) -> Point:
        return self.columns[self.level[key]], _TITLE + _MARGIN + self.placed.rows[key] * _ROW + HEIGHT / 2

    def text(self) -> str:
        width, height = round(self.width), round(self.height)
        arrows = [self._arrow(edge, path) for edge, path in zip(self.drawn.edges, self.placed.paths, strict=True)]
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img"><title>{_escaped(self.title)}</title>',
            f"<style>{_STYLE}</style><defs>{_MARKERS}</defs>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>',
            f'<text class="app" x="{_MARGIN}" y="{_MARGIN + 8}">{_escaped(self.title)}</text>',
            *(line for line, _ in arrows),
            *(label for _, label in arrows if label),
            *(self._box(box) for box in self.drawn.boxes),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _box(self, box: Box) -> str:
        x, y = self.point(box.key)
        left, top = x - WIDTH / 2, y - HEIGHT / 2
        round_corners = {SOURCE: 22, SINK: 10}.get(box.kind, 4)
        style = {DEAD_LETTERS: "dead", REDELIVERY: STEP}.get(box.kind, box.kind)
        captions = (("", box.title), ("name", box.name), ("note", box.note))
        lines = [(style, text) for style, text in captions if text]
        return "".join([
            f'<g transform="translate({left:.0f},{top:.0f})"><title>{_escaped(box.detail or box.title)}</title>',
            f'<rect class="frame {style}" width="{WIDTH}" height="{HEIGHT}" rx="{round_corners}"/>',
            f'<g class="glyph">{_glyph(box)}</g>',
            *(f'<text class="{style}" x="{WIDTH / 2:.0f}" y="{HEIGHT + 16 + 14 * index}"'
              f' text-anchor="middle">{_escaped(_cut(text))}</text>' for index, (style, text) in enumerate(lines)),
            "</g>",
        ])  # fmt: skip

    def _arrow(self, edge: Edge, path: tuple[Key, ...]) -> tuple[str, str]:
        """The line and its label; the label is a piece of pipe, as the book draws channels."""
        half = WIDTH / 2
        stops = [self.point(key) for key in path]
        first, last = (stops[0][0] + half, stops[0][1]), (stops[-1][0] - half - 2, stops[-1][1])
        # Through the layers in between an arrow runs level, past the captions of the boxes there.
        through = [point for x, y in stops[1:-1] for point in ((x - half, y), (x + half, y))]
        points = [first, *through, last]
        if abs(points[0][1] - points[1][1]) > _ROW / 2:
            # A steep arrow bends only when it has left the captions behind.
            points[0] = (stops[0][0] + self.halves[self.level[path[0]]], first[1])
        commands = [f"M{first[0]:.0f},{first[1]:.0f}", _level(points[0])]
        for index, (start, end) in enumerate(pairwise(points)):
            commands.append(_level(end) if index % 2 else _curve(start, end))
        line = f'<path class="edge" d="{" ".join(commands)}" marker-end="url(#end)"/>'
        return line, _pipe(edge, _label_place(points[0], points[1], _pipe_width(edge)))


def _curve(start: Point, end: Point) -> str:
    middle = (start[0] + end[0]) / 2
    return f"C{middle:.0f},{start[1]:.0f} {middle:.0f},{end[1]:.0f} {end[0]:.0f},{end[1]:.0f}"


def _level(end: Point) -> str:
    return f"L{end[0]:.0f},{end[1]:.0f}"


def _label_place(start: Point, end: Point, width: float) -> Point:
    """On the curve, two thirds of the way: near the start the arrows of a router lie too close together."""
    share = 0.5 if start[1] == end[1] else 0.66
    eased = 3 * share**2 - 2 * share**3
    across = 1.5 * share * (1 - share) + share**3 if share != 0.5 else 0.5
    x = start[0] + (end[0] - start[0]) * across
    return min(x, end[0] - width / 2 - 9), start[1] + (end[1] - start[1]) * eased


def _pipe(edge: Edge, place: Point) -> str:
    text = _pipe_text(edge)
    if not text:
        return ""
    (x, y), width = place, _pipe_width(edge)
    left = x - width / 2
    return (
        f'<g><rect class="pipe" x="{left:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="18" rx="5"/>'
        f'<ellipse class="pipe" cx="{left + width - 4:.1f}" cy="{y:.1f}" rx="4" ry="9"/>'
        f'<text class="channel" x="{x - 3:.1f}" y="{y + 4:.1f}" text-anchor="middle">{_escaped(text)}</text></g>'
    )


def _pipe_text(edge: Edge) -> str:
    return " · ".join(part for part in (_cut(edge.channel), edge.note) if part)


def _pipe_width(edge: Edge) -> float:
    text = _pipe_text(edge)
    return len(text) * _SMALL + 18 if text else 0.0


def _box_width(box: Box) -> float:
    return max(WIDTH, len(_cut(box.title)) * _LETTER, len(_cut(box.name)) * _SMALL, len(box.note) * _SMALL)


def _glyph(box: Box) -> str:
    if box.kind == DEAD_LETTERS:
        return glyphs.DEAD
    if box.kind in (STEP, REDELIVERY):
        return box.icon
    return glyphs.ENDPOINTS.get(box.title.split(" ")[0], "")


def _cut(text: str) -> str:
    """Long paths keep their end, where the file's name stands."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else "…" + text[1 - _LONGEST :]


def _escaped(text: str) -> str:
    """Text for XML, without the control characters that XML cannot hold."""
    return escape("".join(character if character >= " " else " " for character in text), {'"': "&quot;"})

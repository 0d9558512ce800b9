"""What the small picture of a pattern is made of: SVG on a field of 64 by 44, after the icons of the EIP book."""

from __future__ import annotations

WIDTH, HEIGHT = 64, 44

Point = tuple[float, float]


def line(*points: Point) -> str:
    return f'<polyline points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def lines(ys: tuple[float, ...], start: float, end: float) -> str:
    """Several level lines, one below the other."""
    return "".join(line((start, y), (end, y)) for y in ys)


def arrow(start: Point, end: Point) -> str:
    return f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" marker-end="url(#small)"/>'


def arrows(ys: tuple[float, ...], start: float, end: float) -> str:
    """Several level arrows, one below the other."""
    return "".join(arrow((start, y), (end, y)) for y in ys)


def box(x: float, y: float, width: float, height: float, filled: bool = False) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{_FILLED if filled else ""}/>'


def square(x: float, y: float, size: float, filled: bool = False) -> str:
    return box(x, y, size, size, filled)


def dot(x: float, y: float, radius: float = 3) -> str:
    return f'<circle cx="{x}" cy="{y}" r="{radius}"{_FILLED}/>'


def letters(text: str) -> str:
    return f'<text x="32" y="28" text-anchor="middle" class="sign">{text}</text>'


_FILLED = ' class="full"'

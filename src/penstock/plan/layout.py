"""Where boxes and arrows go: layers from left to right, few crossings, arrows that never run through a box."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

Key = Hashable
Pair = tuple[Key, Key]
_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Layout:
    """`layers` holds keys from top to bottom; `rows` their vertical places; `paths` every arrow's stops."""

    layers: tuple[tuple[Key, ...], ...]
    rows: Mapping[Key, float]
    paths: tuple[tuple[Key, ...], ...]


def layout(keys: Sequence[str], edges: Sequence[tuple[str, str]], apart: Sequence[str] = ()) -> Layout:
    """Layers by longest path; keys `apart` have no arrows and stand below the last layer. There are no cycles."""
    depth = _depths(keys, edges)
    layers: list[list[Key]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for key in keys:
        layers[depth[key]].append(key)
    paths: list[tuple[Key, ...]] = []
    for number, (start, end) in enumerate(edges):
        # A long arrow keeps a free place in every layer it crosses.
        stops: list[Key] = [(number, level) for level in range(depth[start] + 1, depth[end])]
        for stop, level in zip(stops, range(depth[start] + 1, depth[end]), strict=True):
            layers[level].append(stop)
        paths.append((start, *stops, end))
    pairs = [pair for path in paths for pair in pairwise(path)]
    ordered = _untangled(layers, pairs)
    rows = _rows(ordered, pairs)
    for key in apart:
        rows[key] = max((rows[other] for other in ordered[-1]), default=-1.0) + 1
        ordered[-1].append(key)
    return Layout(tuple(map(tuple, ordered)), rows, tuple(paths))


def _depths(keys: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    before: dict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        before[end].append(start)
    depth: dict[str, int] = {}

    def of(key: str) -> int:
        if key not in depth:
            depth[key] = max((of(start) + 1 for start in before[key]), default=0)
        return depth[key]

    for key in keys:
        of(key)
    return depth


def _untangled(layers: list[list[Key]], pairs: Sequence[Pair]) -> list[list[Key]]:
    """Order each layer by the average place of the neighbours, from both sides in turn; keep the best order."""
    best, fewest = layers, _crossings(layers, pairs)
    current = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        near = _neighbours(pairs, forward)
        for index in range(1, len(current)) if forward else range(len(current) - 2, -1, -1):
            fixed = current[index - 1 if forward else index + 1]
            place = {key: position for position, key in enumerate(fixed)}
            own = {key: position for position, key in enumerate(current[index])}
            weight = {key: mean([place[other] for other in near[key] if other in place] or [own[key]]) for key in own}
            current[index] = sorted(current[index], key=lambda key: (weight[key], own[key]))
        crossings = _crossings(current, pairs)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in current], crossings
    return best


def _neighbours(pairs: Sequence[Pair], backward: bool) -> dict[Key, list[Key]]:
    found: dict[Key, list[Key]] = defaultdict(list)
    for start, end in pairs:
        found[end if backward else start].append(start if backward else end)
    return found


def _crossings(layers: Sequence[Sequence[Key]], pairs: Sequence[Pair]) -> int:
    place = {key: (level, position) for level, layer in enumerate(layers) for position, key in enumerate(layer)}
    spans = [(place[start], place[end]) for start, end in pairs]
    return sum(
        one[0][0] == two[0][0] and (one[0][1] - two[0][1]) * (one[1][1] - two[1][1]) < 0
        for index, one in enumerate(spans)
        for two in spans[index + 1 :]
    )


def _rows(layers: Sequence[Sequence[Key]], pairs: Sequence[Pair]) -> dict[Key, float]:
    """Places one row apart or more, each as near to its neighbours as the order allows."""
    rows = {key: float(position) for layer in layers for position, key in enumerate(layer)}
    sides = _neighbours(pairs, True), _neighbours(pairs, False)
    for sweep in range(2 * _SWEEPS):
        near = sides[sweep % 2]
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wished = [mean([rows[other] for other in near[key]]) if near[key] else rows[key] for key in layer]
            rows.update(zip(layer, _spread(wished), strict=True))
    top = min(rows.values(), default=0.0)
    return {key: row - top for key, row in rows.items()}


def _spread(wished: Sequence[float]) -> list[float]:
    """The places nearest to the wished ones that keep the order and a distance of one row."""
    groups: list[tuple[float, int]] = []
    for index, wish in enumerate(wished):
        total, size = wish - index, 1
        # Neighbours that would overlap share the average of their wishes.
        while groups and groups[-1][0] / groups[-1][1] > total / size:
            total, size = total + groups[-1][0], size + groups[-1][1]
            groups.pop()
        groups.append((total, size))
    flat = [total / size for total, size in groups for _ in range(size)]
    return [base + index for index, base in enumerate(flat)]

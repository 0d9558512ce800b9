"""The figures, drawn from samples alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.log.comparing import PUBLISHERS, STREAM, WAITING
from penstock.bench.log.peers import PEERS
from penstock.bench.log.reading import PAYLOADS as READ_PAYLOADS
from penstock.bench.log.reading import READ, ROUND_TRIP, SIDES
from penstock.bench.log.samples import Samples
from penstock.bench.log.tables import PAPER_WRITE
from penstock.bench.log.writing import ALONE, BATCH_1, BATCH_2, BATCH_PAYLOADS, LAST_LEVEL, LEVELS, PAYLOADS, WRITE
from penstock.bench.report.figures import darkened, store
from penstock.bench.report.style import DARK, LIGHT, legend, rates
from penstock.errors import BadMachine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = (*PEERS, LEVELS, ALONE, "paper", *map(str, READ_PAYLOADS), "4")
_ON_LIGHT = ("#0b6bcb", "#2aa1b3", "#0f8a5f", "#d1570c", "#b88900", "#7a4fc4", "#0b6bcc", "#d1570d", "#6b7480",
             "#0b6bcd", "#0f8a60", "#d1570e", "#7a4fc5")  # fmt: skip
_ON_DARK = ("#5aa9ff", "#5cd0e0", "#3ecf97", "#ff8a45", "#e8bd3f", "#b494ff", "#5aa9fe", "#ff8a46", "#a3adb8",
            "#5aa9fd", "#3ecf98", "#ff8a47", "#b494fe")  # fmt: skip
_LIGHT = replace(LIGHT, peers=dict(zip(_NAMES, _ON_LIGHT, strict=True)))
_DARK = replace(DARK, peers=dict(zip(_NAMES, _ON_DARK, strict=True)))


@dataclass(frozen=True, slots=True)
class Plot:
    name: str
    title: str
    caption: str
    draw: Callable[[Samples], Figure | None]


@dataclass(frozen=True, slots=True)
class Drawn:
    plot: Plot
    light: str
    dark: str


def draw(samples: Samples, directory: Path) -> list[Drawn]:
    """Every figure of which something was measured, as PNG and SVG into a directory, and as text for the page."""
    try:
        import matplotlib
    except ImportError:
        raise BadMachine("figures need matplotlib", None, 'pip install "penstock[bench]"') from None
    drawn = []
    with matplotlib.rc_context(_LIGHT.settings()):
        for plot in PLOTS:
            figure = plot.draw(samples)
            if figure is not None:
                svg = store(figure, directory / plot.name)
                drawn.append(Drawn(plot, svg, darkened(svg, _LIGHT, _DARK)))
    return drawn


def _panels(titles: Sequence[str], height: float = 4.0) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(titles), height), layout="constrained")
    panels = list(figure.subplots(1, len(titles), squeeze=False)[0])
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title)
    return figure, panels


def _line(axes: Axes, name: str, label: str, points: dict[int, float | None], style: str = "-") -> list[float]:
    known = {x: y for x, y in points.items() if y is not None}
    axes.plot(list(known), list(known.values()), style, color=_LIGHT.colour(name), marker="o", markersize=5,
              linewidth=1.6, label=label)  # fmt: skip
    return list(known.values())


def _sizes(axes: Axes, sizes: Sequence[int], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.minorticks_off()
    names = [f"{size >> 10} k" if size % 1024 == 0 and size > 1024 else str(size) for size in sizes]
    axes.set_xticks(list(sizes), names)
    axes.set_xlabel(label)
    axes.grid(visible=False, axis="x")


def _write(samples: Samples) -> Figure | None:
    if not any(samples.matching(what=WRITE)):
        return None
    figure, panels = _panels(("last level", "whole way", "levels by alone"))
    for axes, what in zip(panels, (LAST_LEVEL, WRITE), strict=False):
        shown: list[float] = []
        for mode, style in (("written", "-"), ("fsynced", "--")):
            for side in (LEVELS, ALONE):
                if what == WRITE or mode == "written":
                    points = {size: samples.rate(what=what, side=side, mode=mode, payload=size) for size in PAYLOADS}
                    shown += _line(axes, side, f"{side}, {mode}", points, style)
        rates(axes, shown)
        _sizes(axes, PAYLOADS, "bytes of a message")
    panels[0].set_ylabel("messages/s")
    ratios = {size: samples.ratio(*({"what": LAST_LEVEL, "side": side, "mode": "written", "payload": size}
                                    for side in (LEVELS, ALONE))) for size in PAYLOADS}  # fmt: skip
    shown = _line(panels[2], LEVELS, "last level, written", ratios)
    shown += _line(panels[2], "paper", "paper", dict(PAPER_WRITE), ":")
    rates(panels[2], shown)
    _sizes(panels[2], PAYLOADS, "bytes of a message")
    legend(figure, panels)
    return figure


def _batch(samples: Samples) -> Figure | None:
    if not any(samples.matching(what=BATCH_1)):
        return None
    figure, panels = _panels((BATCH_1, BATCH_2))
    for axes, what in zip(panels, (BATCH_1, BATCH_2), strict=True):
        sizes, shown = samples.values("setting", what=what), []
        for payload in BATCH_PAYLOADS:
            for mode, style in ((LAST_LEVEL, "-"), (WRITE, "--")):
                points = {
                    size: None if (rate := samples.rate(what=what, mode=mode, payload=payload, setting=size)) is None
                    else rate * payload for size in sizes
                }  # fmt: skip
                shown += _line(axes, str(payload), f"{payload} B, {mode.removeprefix('write, ')}", points, style)
        rates(axes, shown)
        _sizes(axes, sizes, "bytes of a batch")
    panels[0].set_ylabel("bytes of messages/s")
    legend(figure, panels)
    return figure


def _read(samples: Samples) -> Figure | None:
    if not any(samples.matching(what=READ)):
        return None
    figure, panels = _panels(("reads/s", "round trip, µs (median)"))
    for payload in READ_PAYLOADS:
        name, label = str(payload), f"{payload} B"
        found = [samples.rate(what=READ, side=side, payload=payload) for side in SIDES]
        trips = [samples.wait("median_wait", what=ROUND_TRIP, side=side, payload=payload) for side in SIDES]
        _dots(panels[0], name, label, SIDES, found)
        _dots(panels[1], name, label, SIDES, [None if trip is None else trip * 1e6 for trip in trips])
    panels[1].set_yticklabels([])
    legend(figure, panels)
    return figure


def _dots(axes: Axes, name: str, label: str, rows: Sequence[str], values: Sequence[float | None]) -> None:
    known = [(row, value) for row, value in enumerate(values) if value is not None]
    axes.plot([value for _, value in known], [row for row, _ in known], "o", color=_LIGHT.colour(name), label=label)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.grid(visible=False, axis="y")


def _peers(samples: Samples) -> Figure | None:
    """A row of panels for every mode; a peer that lacks the mode has no dot."""
    from matplotlib.figure import Figure

    modes = samples.values("mode", what=WAITING)
    if not modes:
        return None
    cases: list[tuple[str, dict[str, Any]]] = [
        (f"{PUBLISHERS} publishers that wait", {"what": WAITING, "setting": PUBLISHERS}),
        ("one publisher that waits", {"what": WAITING, "setting": 1}),
        ("stream", {"what": STREAM}),
    ]
    figure = Figure(figsize=(5.2 * len(cases), 2.6 * len(modes)), layout="constrained")
    grid = figure.subplots(len(modes), len(cases), squeeze=False)
    payloads = samples.values("payload", what=WAITING)
    for row, mode in zip(grid, modes, strict=True):
        for axes, (title, wanted) in zip(row, cases, strict=True):
            axes.set_title(f"{mode}: {title}")
            for payload in payloads:
                found = [samples.rate(side=name, mode=mode, payload=payload, **wanted) for name in PEERS]
                _dots(axes, str(payload), f"{payload} B", [peer.title for peer in PEERS.values()], found)
            axes.set_xlabel("messages/s")
        for axes in row[1:]:
            axes.set_yticklabels([])
    legend(figure, [grid[0][0]])
    return figure


PLOTS = (
    Plot("figure-12-write", "Writing, MultiMQC figure 12",
         "Messages per second with the levels before the last one and without, and how many times faster.", _write),
    Plot("figure-13-batch", "Batches, MultiMQC figure 13",
         "Bytes of messages per second over the size of the batches that levels 1 and 2 hand on.", _batch),
    Plot("figure-14-15-read", "Reading, MultiMQC figures 14 and 15", "How fast each level answers.", _read),
    Plot("peers", "Peers", "Each through its own Python client; a system without a dot does not have that mode.",
         _peers),
)  # fmt: skip

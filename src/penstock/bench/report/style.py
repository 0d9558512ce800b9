"""How figures look: the same colour and marker for a peer everywhere, on light and on dark paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from penstock.bench.peers import PEERS
from penstock.bench.statistics import Throughput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a page."""

    name: str
    paper: str
    ink: str
    faint: str
    grid: str
    peers: dict[str, str]

    def colour(self, peer: str) -> str:
        return self.peers[peer]

    def colours(self) -> tuple[str, ...]:
        return (self.paper, self.ink, self.faint, self.grid, *self.peers.values())

    def settings(self) -> dict[Any, Any]:
        """For matplotlib."""
        return {
            "figure.facecolor": self.paper, "savefig.facecolor": self.paper, "axes.facecolor": self.paper,
            "axes.edgecolor": self.faint, "axes.labelcolor": self.ink, "axes.titlecolor": self.ink,
            "text.color": self.ink, "xtick.color": self.faint, "ytick.color": self.faint,
            "xtick.labelcolor": self.ink, "ytick.labelcolor": self.ink, "grid.color": self.grid,
            "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.linewidth": 0.7,
            "axes.axisbelow": True, "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
            "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 10,
            "legend.frameon": False, "svg.hashsalt": "penstock", "svg.fonttype": "path",
        }  # fmt: skip


LIGHT = Theme(
    "light", "#ffffff", "#1c2128", "#8b949e", "#e4e8ec",
    {
        "penstock": "#0b6bcb", "camel": "#d1570c", "pyspark": "#7a4fc4", "python": "#6b7480", "duckdb": "#b88900",
        "polars": "#0f8a5f",
    },
)  # fmt: skip
DARK = Theme(
    "dark", "#14181d", "#e2e7ed", "#7d8793", "#2a313a",
    {
        "penstock": "#5aa9ff", "camel": "#ff8a45", "pyspark": "#b494ff", "python": "#a3adb8", "duckdb": "#e8bd3f",
        "polars": "#3ecf97",
    },
)  # fmt: skip
_MARKERS = {"penstock": "o", "camel": "s", "pyspark": "^", "python": "v", "duckdb": "D", "polars": "P"}
NO_RESULT = "no result"
_LINEAR, _FINE = 30.0, 1000.0
_MARGIN, _HEADROOM = 1.6, 1.25


def marker(peer: str) -> str:
    return _MARKERS[peer]


def line(axes: Axes, theme: Theme, peer: str, points: Sequence[tuple[float, Throughput] | None]) -> None:
    """The means of a peer with their confidence intervals; the line is broken where there is no point."""
    label: str | None = PEERS[peer].title
    for is_known, run in groupby(points, lambda point: point is not None):
        if is_known:
            known = [point for point in run if point is not None]
            axes.errorbar(
                [x for x, _ in known], [found.mean for _, found in known], yerr=errors([found for _, found in known]),
                color=theme.colour(peer), marker=marker(peer), markersize=5, linewidth=1.6, elinewidth=1.0, capsize=2.5,
                label=label, zorder=4 if peer == "penstock" else 3,
            )  # fmt: skip
            label = None


def errors(found: Sequence[Throughput]) -> list[list[float]]:
    """The bars below and above; below they stay above zero, because most axes are logarithmic."""
    intervals = [one.interval or 0.0 for one in found]
    below = [min(interval, 0.95 * one.mean) for interval, one in zip(intervals, found, strict=True)]
    return [below, intervals]


def rates(axes: Axes, values: Sequence[float], vertical: bool = True) -> None:
    """Make an axis one of rates: from zero where the lowest can be seen then, otherwise logarithmic."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis = axes.yaxis if vertical else axes.xaxis
    apart = max(values) / min(values)
    if apart > _LINEAR:
        (axes.set_yscale if vertical else axes.set_xscale)("log")
        steps = (1.0, 2.0, 5.0) if apart < _FINE else (1.0,)
        axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=12))
        axis.set_minor_locator(NullLocator())
        bounds = min(values) / _MARGIN, max(values) * _MARGIN
    else:
        bounds = 0.0, max(values) * _HEADROOM
    (axes.set_ylim if vertical else axes.set_xlim)(*bounds)  # wide intervals are cut off rather than shown whole
    axis.set_major_formatter(FuncFormatter(lambda value, _: human_rate(value)))


def human_rate(rate: float) -> str:
    """Like "0.5", "20 k" or "1.5 M"."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= limit:
            return f"{rate / limit:g} {unit}"
    return f"{rate:g}"


def legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, above them."""
    entries: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    if NO_RESULT in entries:
        entries[NO_RESULT] = entries.pop(NO_RESULT)  # the last
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside upper left", ncols=len(entries), fontsize=9.5)

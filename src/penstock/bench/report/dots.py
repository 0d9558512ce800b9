"""Figures of workloads: a dot for the mean, a line for the confidence interval, a cross where there is no result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.bench.peers import PEERS
from penstock.bench.report.results import Results
from penstock.bench.report.style import NO_RESULT, Theme, errors, legend, marker, rates
from penstock.bench.workload import WORKLOADS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def groups(results: Results, theme: Theme, chosen: Mapping[str, Sequence[str]]) -> Figure | None:
    """One panel for each group of workloads, all with the same axis of messages per second."""
    from matplotlib.figure import Figure

    peers = [peer for peer in results.peers if any(results.rate(peer, n) for names in chosen.values() for n in names)]
    if not peers:
        return None
    heights = [len(names) for names in chosen.values()]
    figure = Figure(figsize=(10.0, 0.42 * sum(heights) + 0.75 * len(heights) + 0.8), layout="constrained")
    ratios = [height + 0.6 for height in heights]
    panels = list(figure.subplots(len(chosen), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0])
    for (title, names), axes in zip(chosen.items(), panels, strict=True):
        _panel(axes, results, theme, names, peers)
        axes.set_title(title)
    known = [results.rate(peer, name) for peer in peers for names in chosen.values() for name in names]
    rates(panels[-1], [rate for rate in known if rate is not None], vertical=False)
    panels[-1].set_xlabel("messages/s")
    for (_, names), axes in zip(chosen.items(), panels, strict=True):
        _crosses(axes, results, theme, names, peers)
    if None in known:
        panels[0].plot([], [], marker="x", linestyle="none", color=theme.faint, markersize=5, label=NO_RESULT)
    legend(figure, panels)
    return figure


def _panel(axes: Axes, results: Results, theme: Theme, names: Sequence[str], peers: Sequence[str]) -> None:
    for number, peer in enumerate(peers):
        found = [(row, results.throughput(peer, results.cell(name))) for row, name in enumerate(names)]
        known = [(row, one) for row, one in found if one is not None]
        if known:
            axes.errorbar(
                [one.mean for _, one in known], [row + _shift(number, len(peers)) for row, _ in known],
                xerr=errors([one for _, one in known]), color=theme.colour(peer), marker=marker(peer), linestyle="none",
                markersize=5.5, elinewidth=1.2, capsize=2, label=PEERS[peer].title,
            )  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    for row in range(len(names) - 1):
        axes.axhline(row + 0.5, color=theme.grid, linewidth=0.7)


def _crosses(axes: Axes, results: Results, theme: Theme, names: Sequence[str], peers: Sequence[str]) -> None:
    """Crosses at the right edge, one for each peer that has no result."""
    for row, name in enumerate(names):
        for number, peer in enumerate(peers):
            if results.rate(peer, name) is None:
                axes.plot(
                    [1.015], [row + _shift(number, len(peers))], transform=axes.get_yaxis_transform(), marker="x",
                    color=theme.colour(peer), markersize=4.5, markeredgewidth=1.2, clip_on=False,
                )  # fmt: skip


def _shift(number: int, count: int) -> float:
    """Peers of one workload stand a little below each other."""
    return (number - (count - 1) / 2) * 0.72 / max(count, 1)


def gaps(results: Results, chosen: Mapping[str, Sequence[str]]) -> list[str]:
    """What such a figure does not show."""
    names = dict.fromkeys(name for group in chosen.values() for name in group)
    found = []
    for peer in results.peers:
        lost = [name for name in names if name in WORKLOADS and results.rate(peer, name) is None]
        if lost:
            found.append(f"{PEERS[peer].title}: {', '.join(lost)}")
    return found

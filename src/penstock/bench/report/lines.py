"""Figures of scale factors: message sizes, concurrent users, batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.bench.peers import PEERS
from penstock.bench.report.paper import FPGA_MEGABITS
from penstock.bench.report.questions import human_bytes
from penstock.bench.report.results import Results
from penstock.bench.report.style import Theme, legend, line, rates
from penstock.bench.schedule import Cell
from penstock.bench.statistics import Throughput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USERS, BATCH, SIZE = "users", "batch", "size"
_X = {
    USERS: "concurrent users",
    BATCH: "messages in a batch",
    SIZE: "message size, eta and bytes",
}
_MEGABITS = 8 / 1e6


def scaling(results: Results, theme: Theme, factor: str, workloads: Sequence[str]) -> Figure | None:
    """Messages per second over a scale factor, one panel for each workload."""
    from matplotlib.figure import Figure

    chosen = [name for name in workloads if results.values(factor, name)]
    if not chosen:
        return None
    figure = Figure(figsize=(5.2 * len(chosen), 4.0), layout="constrained")
    panels = figure.subplots(1, len(chosen), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, chosen, strict=True):
        _panel(axes, results, theme, factor, name)
        axes.set_title(name)
    panels[0].set_ylabel("messages/s")
    rates(panels[0], [point.mean for name in chosen for point in _shown(results, factor, name)])
    legend(figure, panels)
    return figure


def size_and_volume(results: Results, theme: Theme) -> Figure | None:
    """The baseline over the message size: messages per second, and the same as MBit/s."""
    from matplotlib.figure import Figure

    if not results.values(SIZE, "BL"):
        return None
    figure = Figure(figsize=(10.4, 4.0), layout="constrained")
    messages, volume = figure.subplots(1, 2)
    _panel(messages, results, theme, SIZE, "BL")
    _panel(volume, results, theme, SIZE, "BL", as_volume=True)
    messages.set_title("messages/s")
    volume.set_title("MBit/s")
    volume.axhline(FPGA_MEGABITS, color=theme.faint, linestyle=(0, (4, 3)), linewidth=1.1)
    volume.annotate(
        f"FPGA of HW-EIP: about {FPGA_MEGABITS} MBit/s", (1.0, FPGA_MEGABITS), (0, 3), color=theme.faint, fontsize=8.5,
        xycoords=("axes fraction", "data"), textcoords="offset points", ha="right", va="bottom",
    )  # fmt: skip
    rates(messages, [point.mean for point in _shown(results, SIZE, "BL")])
    rates(volume, [point.mean for point in _shown(results, SIZE, "BL", as_volume=True)])
    legend(figure, [messages])
    return figure


def _panel(axes: Axes, results: Results, theme: Theme, factor: str, workload: str, as_volume: bool = False) -> None:
    for peer in results.peers:
        line(axes, theme, peer, _points(results, peer, factor, workload, as_volume))
    _label(axes, results, factor, workload, results.values(factor, workload))


def _points(
    results: Results, peer: str, factor: str, workload: str, as_volume: bool = False
) -> list[tuple[float, Throughput] | None]:
    """A point for every value that any peer has a number for; None where this one has none."""
    points: list[tuple[float, Throughput] | None] = []
    for value in results.values(factor, workload) if _takes(peer, factor) else ():
        cell = scaled(results, factor, workload, value)
        found = results.throughput(peer, cell)
        if found is not None and as_volume:
            found = _times(found, (results.bytes_per_message(peer, cell) or 0.0) * _MEGABITS)
        points.append(None if found is None else (float(value), found))
    return points


def _shown(results: Results, factor: str, workload: str, as_volume: bool = False) -> list[Throughput]:
    every = (point for peer in results.peers for point in _points(results, peer, factor, workload, as_volume))
    return [point[1] for point in every if point is not None]


def scaled(results: Results, factor: str, workload: str, value: int) -> Cell:
    sizes: dict[str, Any] = {factor: value}
    return replace(results.cell(workload), **sizes)


def _takes(peer: str, factor: str) -> bool:
    return factor in PEERS[peer].factors


def _times(found: Throughput, factor: float) -> Throughput:
    interval = None if found.interval is None else found.interval * factor
    return replace(found, mean=found.mean * factor, interval=interval)


def _label(axes: Axes, results: Results, factor: str, workload: str, values: Sequence[int]) -> None:
    axes.set_xlabel(_X[factor])
    axes.grid(visible=False, axis="x")
    if factor == SIZE:
        axes.set_xticks(list(values), [_size_label(results, workload, values, value) for value in values])
        return
    axes.set_xscale("log", base=2)
    axes.minorticks_off()
    every = 1 if len(values) < 9 else 2
    axes.set_xticks(list(values), ["" if n % every else _power(value) for n, value in enumerate(values)])


def _power(value: int) -> str:
    return str(value) if value < 1000 else f"$2^{{{value.bit_length() - 1}}}$"


def _size_label(results: Results, workload: str, values: Sequence[int], value: int) -> str:
    if len(values) > 8 and values.index(value) % 3 and value != values[-1]:
        return str(value)
    cell = scaled(results, SIZE, workload, value)
    sizes = (results.bytes_per_message(peer, cell) for peer in results.peers)
    return f"{value}\n{human_bytes(next(size for size in sizes if size is not None))}"


def gaps(results: Results, factor: str, workloads: Sequence[str]) -> list[str]:
    """What such a figure does not show, with the reason."""
    found: list[str] = []
    for name in workloads:
        cells = {value: scaled(results, factor, name, value) for value in results.values(factor, name)}
        for peer in results.peers:
            lost = {value: cell for value, cell in cells.items() if results.throughput(peer, cell) is None}
            if lost and _takes(peer, factor):
                reasons = dict.fromkeys(results.absent(peer, cell).status for cell in lost.values())
                numbers = ", ".join(f"{value:,}" for value in lost)
                found.append(f"{name} on {PEERS[peer].title} at {numbers}: {', '.join(reasons)}")
    return found

"""The figures of the papers, drawn from the samples of a run: as PNG, as SVG, and for dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.report import dots, lines
from penstock.bench.report.lines import BATCH, SIZE, USERS
from penstock.bench.report.results import Results
from penstock.bench.report.style import DARK, LIGHT, Theme
from penstock.bench.workload import CARS, WORKLOADS
from penstock.errors import BadMachine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RESOLUTION = 160
_ROUTERS = ("RT-1-A", "RT-1-B")
_PATTERNS = {
    "transformation and message generation": ("BL", "SP-A", "SP-B", "AGG-A", "AGG-B", "MT-A", "CE-A"),
    "routing": (
        "BL", "RT-1-A", "RT-1-B", "RT-1-C", "LB-2", "LB-3", "LB-4", "JR-2", "JR-3", "JR-4",
    ),
    "composition": ("BL", "SpAgg-A", "SpAgg-B", "LBSpAggJR-3", "LBSpAggJR-4"),
}  # fmt: skip
_CARS = {"connected cars": tuple(name for name, workload in WORKLOADS.items() if workload.family == CARS)}


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of a paper: how it is drawn, and what it would show but cannot."""

    name: str
    title: str
    caption: str
    draw: Callable[[Results, Theme], Figure | None]
    gaps: Callable[[Results], list[str]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure as SVG; None where there is nothing to draw."""

    plot: Plot
    light: str | None
    dark: str | None
    gaps: tuple[str, ...]


def _scaling(name: str, title: str, caption: str, factor: str, workloads: Sequence[str]) -> Plot:
    return Plot(
        name, title, caption, partial(lines.scaling, factor=factor, workloads=workloads),
        partial(lines.gaps, factor=factor, workloads=workloads),
    )  # fmt: skip


PLOTS = (
    _scaling(
        "figure-4-size", "EIPBench figure 4 (Q4)",
        "Content-based router: messages per second over the size of a message.", SIZE, _ROUTERS,
    ),
    _scaling(
        "figure-5-users", "EIPBench figure 5 (Q5)",
        "Content-based router: messages per second over the number of concurrent users.", USERS, _ROUTERS,
    ),
    _scaling(
        "figure-6-batch", "EIPBench figure 6 (Q6)",
        "Content-based router: messages per second over the number of messages in a batch.", BATCH, _ROUTERS,
    ),
    Plot(
        "hardware-figure-7-patterns", "HW-EIP figure 7",
        "All patterns beside the baseline. Error bars are the confidence interval; a cross at the right is a peer "
        "without a result.",
        partial(dots.groups, chosen=_PATTERNS), partial(dots.gaps, chosen=_PATTERNS),
    ),
    _scaling(
        "hardware-figure-9-users", "HW-EIP figure 9",
        "Router (CBR-A, here RT-1-A) and splitter (SP-B) over the number of concurrent users.", USERS,
        ("RT-1-A", "SP-B"),
    ),
    Plot(
        "hardware-figure-10-size", "HW-EIP figure 10",
        "The baseline over the size of a message: messages per second, and the same as a volume.",
        lines.size_and_volume, partial(lines.gaps, factor=SIZE, workloads=("BL",)),
    ),
    Plot(
        "hardware-figure-11-cars", "HW-EIP figure 11", "Connected cars, as drawn and with each optimisation.",
        partial(dots.groups, chosen=_CARS), partial(dots.gaps, chosen=_CARS),
    ),
)  # fmt: skip


def draw(results: Results, directory: Path) -> list[Drawn]:
    """Draw every figure for which there are samples, into files and as text for the page."""
    try:
        import matplotlib
    except ImportError:
        raise BadMachine("figures need matplotlib", None, 'pip install "penstock[bench]"') from None
    drawn = []
    with matplotlib.rc_context(LIGHT.settings()):
        for plot in PLOTS:
            figure = plot.draw(results, LIGHT)
            svg = None if figure is None else store(figure, directory / plot.name)
            drawn.append(Drawn(plot, svg, svg and darkened(svg, LIGHT, DARK), tuple(plot.gaps(results))))
    return drawn


def store(figure: Figure, path: Path) -> str:
    """Without a date, so that the same samples give the same files."""
    figure.savefig(path.with_suffix(".png"), dpi=_RESOLUTION, metadata={"Software": None})
    figure.set_layout_engine("none")  # it is laid out now, and that takes time
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    path.with_suffix(".svg").write_text(out.getvalue(), encoding="utf-8")
    return out.getvalue()


def darkened(svg: str, light: Theme, dark: Theme) -> str:
    """The same picture for dark pages."""
    colours = dict(zip(light.colours(), dark.colours(), strict=True))
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: colours.get(found[0], found[0]), svg)

"""The report of a run: tables, figures and targets, from its samples alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.bench.report.targets import Target
from penstock.bench.rundirectory import Run


@dataclass(frozen=True, slots=True)
class Report:
    """Where the page is, and how the targets are met."""

    path: Path
    targets: tuple[Target, ...]


def write_report(run: Run) -> Report:
    """Write `report/index.html` and the figures below the directory of a run."""
    from penstock.bench.report.figures import draw
    from penstock.bench.report.page import page
    from penstock.bench.report.questions import answers
    from penstock.bench.report.results import Results
    from penstock.bench.report.targets import targets

    directory = run.path / "report"
    directory.mkdir(exist_ok=True)
    results = Results(run)
    wanted = targets(results)
    path = directory / "index.html"
    path.write_text(page(results, wanted, answers(results), draw(results, directory)), encoding="utf-8")
    return Report(path, tuple(wanted))

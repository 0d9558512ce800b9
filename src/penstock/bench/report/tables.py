"""The tables of a report, as data: what stands in each cell, and what a look at it tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from penstock.bench.peers import PEERS
from penstock.bench.report.paper import COLUMNS, Printed
from penstock.bench.report.results import CAMEL, PENSTOCK, VECTORISED, Results, ratio, spaced_of_compact
from penstock.bench.report.targets import Target
from penstock.bench.schedule import counted
from penstock.bench.workload import FAMILIES, WORKLOADS

NUMBER, ABSENT, TEXT, HEAD = "number", "absent", "text", "head"


@dataclass(frozen=True, slots=True)
class Field:
    """A cell: `text`, something `small` below it, and a `hint` for who points at it."""

    text: str
    kind: str = NUMBER
    small: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]
    note: str = ""


_NOTHING = Field("–", ABSENT)


def beside_paper(results: Results, printed: Mapping[str, Mapping[str, Printed]], note: str) -> Table:
    """A table of the paper with a column for every peer; columns in which the paper has nothing are left out."""
    columns = [column for column in COLUMNS if any(column in row for row in printed.values())]
    rows = []
    for name, numbers in printed.items():
        ours = [_measured(results, peer, name) for peer in results.peers]
        theirs = [_printed(numbers.get(column)) for column in columns]
        rows.append((_workload(name), *ours, *theirs))
    header = ("", *(PEERS[peer].title for peer in results.peers), *(f"{column}, paper" for column in columns))
    return Table(header, tuple(rows), note)


def everything(results: Results, family: str) -> Table:
    """All workloads of a family with all peers; below each rate its part of the peer's own baseline."""
    header = (
        "", *(PEERS[peer].title for peer in results.peers), "Penstock / Camel", "Penstock / best vectorised engine",
    )  # fmt: skip
    rows = []
    for workload in WORKLOADS.values():
        if workload.family == family and workload.name in results.run.settings.workloads:
            cells = [_measured(results, peer, workload.name, relative=True) for peer in results.peers]
            rows.append((_workload(workload.name), *cells, *_ratios(results, workload.name)))
    return Table(header, tuple(rows))


def families(results: Results) -> list[str]:
    chosen = {WORKLOADS[name].family for name in results.run.settings.workloads}
    return [family for family in FAMILIES if family in chosen]


def cores(results: Results) -> Table | None:
    """What more cores bring, if the run had several numbers of them."""
    counts = results.run.settings.cores
    if len(counts) < 2:
        return None
    rows = []
    for name in results.run.settings.workloads:
        fields = [_speedup(results, peer, name, counts[0], counts[-1]) for peer in results.peers]
        if any(field.kind == NUMBER for field in fields):
            rows.append((_workload(name), *fields))
    return Table(("", *(PEERS[peer].title for peer in results.peers)), tuple(rows))


def spellings(results: Results) -> Table | None:
    """What is left of the rate with compact JSON when JSON is written with spaces, if the run had both."""
    if len(results.run.settings.spellings) < 2:
        return None
    rows = []
    for name in results.run.settings.workloads:
        fields = [_times(spaced_of_compact(results, peer, name)) for peer in results.peers]
        if any(field.kind == NUMBER for field in fields):
            rows.append((_workload(name), *fields))
    return Table(("", *(PEERS[peer].title for peer in results.peers)), tuple(rows))


def phases(results: Results) -> Table:
    """The mean seconds that a fork of each peer spends in each phase."""
    rows = []
    for peer in results.peers:
        forks = {(s.cell, s.fork): s for s in results.samples if s.peer == peer}.values()
        seconds = [
            [getattr(sample, f"{phase}_seconds") for sample in forks] for phase in ("fork", "load", "work", "verify")
        ]
        fields = [Field(f"{fmean(each):.2f}") if each else _NOTHING for each in seconds]
        versions = ", ".join(sorted({sample.peer_version for sample in forks}))
        rows.append((Field(PEERS[peer].title, HEAD, versions), Field(str(len(forks))), *fields))
    return Table(("", "forks", "T_fork", "T_load", "T_work", "T_post"), tuple(rows), "Mean seconds of a fork.")


def wanted(targets: Iterable[Target]) -> Table:
    rows = [
        (Field(target.text, TEXT), Field(target.found, TEXT), Field(target.status, target.status)) for target in targets
    ]
    return Table(("target", "found", ""), tuple(rows))


def _workload(name: str) -> Field:
    return Field(name, HEAD, WORKLOADS[name].title)


def _measured(results: Results, peer: str, name: str, relative: bool = False) -> Field:
    cell = results.cell(name)
    found = results.throughput(peer, cell)
    if found is None:
        absent = results.absent(peer, cell)
        return Field(absent.status, ABSENT, hint=absent.reason)
    interval = "" if found.interval is None else f"± {found.interval:,.0f}"
    base = ratio(found.mean, results.rate(peer, "BL"))
    part = f"{base:.2f} BL" if relative and base is not None else ""
    hint = (
        f"median {found.median:,.0f}, from {found.least:,.0f} to {found.most:,.0f}, "
        f"{counted(found.forks, 'fork')}, {counted(found.iterations, 'iteration')}"
    )
    return Field(f"{found.mean:,.0f}", small="\n".join(filter(None, (interval, part))), hint=hint)


def _printed(number: Printed | None) -> Field:
    return Field("n/a", ABSENT) if number is None else Field(f"{number.mean:,}", small=f"± {number.interval:,}")


def _ratios(results: Results, name: str) -> tuple[Field, Field]:
    ours, best = results.median(PENSTOCK, name), results.best(VECTORISED, name)
    against = ratio(ours, best[1] if best else None)
    return _times(ratio(ours, results.median(CAMEL, name))), _times(against, PEERS[best[0]].title if best else "")


def _speedup(results: Results, peer: str, name: str, few: int, many: int) -> Field:
    found = ratio(results.mean(peer, results.cell(name, cores=many)), results.mean(peer, results.cell(name, cores=few)))
    return _times(found)


def _times(found: float | None, small: str = "") -> Field:
    return _NOTHING if found is None else Field(f"{found:.2f} ×", small=small)

"""The samples of a run as answers: how fast a peer is in a cell, or why nobody knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.bench.rundirectory import MISSING, RIGHT, WRONG, Run
from penstock.bench.samples import Sample
from penstock.bench.schedule import Cell
from penstock.bench.spelling import COMPACT, SPACED
from penstock.bench.statistics import Throughput, throughput

PENSTOCK, CAMEL = "penstock", "camel"
VECTORISED = ("duckdb", "polars")
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Absent:
    """Why there is no number: `status` in a word or two, `reason` in full."""

    status: str
    reason: str


class Results:
    """What a run found. The tables use the largest number of cores of the run, and its first spelling."""

    def __init__(self, run: Run) -> None:
        self.run, self.peers = run, run.settings.peers
        self.cores, self.spelling = max(run.settings.cores), run.settings.spellings[0]
        self.samples = [sample for sample in run.samples() if not sample.warmup]
        self.verdicts, self.failures = run.verdicts(), run.failures()
        self.by_cell: defaultdict[tuple[str, Cell], list[Sample]] = defaultdict(list)
        for sample in self.samples:
            self.by_cell[sample.peer, sample.cell].append(sample)
        self.known = {key: _throughput(samples) for key, samples in self.by_cell.items()}

    def cell(
        self, workload: str, users: int | None = None, batch: int | None = None, size: int | None = None,
        cores: int | None = None, spelling: str | None = None,
    ) -> Cell:  # fmt: skip
        return Cell(workload, users, batch, size, cores or self.cores, spelling or self.spelling)

    def throughput(self, peer: str, cell: Cell) -> Throughput | None:
        return self.known.get((peer, cell))

    def rate(self, peer: str, workload: str) -> float | None:
        """The mean of a plain workload, in messages per second."""
        return self.mean(peer, self.cell(workload))

    def median(self, peer: str, workload: str, spelling: str | None = None) -> float | None:
        """Of all iterations of all forks: what one of them met with on the machine counts for little."""
        found = self.throughput(peer, self.cell(workload, spelling=spelling))
        return None if found is None else found.median

    def mean(self, peer: str, cell: Cell) -> float | None:
        found = self.throughput(peer, cell)
        return None if found is None else found.mean

    def bytes_per_message(self, peer: str, cell: Cell) -> float | None:
        samples = self.by_cell.get((peer, cell))
        return samples[0].bytes / samples[0].messages if samples else None

    def megabytes(self, peer: str, cell: Cell) -> float | None:
        """Millions of bytes per second."""
        rate, size = self.mean(peer, cell), self.bytes_per_message(peer, cell)
        return None if rate is None or size is None else rate * size / 1e6

    def absent(self, peer: str, cell: Cell) -> Absent:
        """Why there is no number for this; only to be asked where there is none."""
        if peer not in self.peers or cell.workload not in self.run.settings.workloads:
            return Absent(NOT_MEASURED, "not asked for in this run")
        verdict = self.verdicts.get((peer, cell.workload))
        if verdict is not None and verdict.status == WRONG:
            return Absent("WRONG", verdict.reason)
        if verdict is not None and verdict.status != RIGHT:
            return Absent("missing" if verdict.status == MISSING else "failed", verdict.reason)
        failure = self.failures.get((peer, cell))
        if failure is not None:
            return Absent("failed", failure.reason)
        return Absent(NOT_MEASURED, "not reached, or not asked for in this run")

    def best(self, peers: Iterable[str], workload: str) -> tuple[str, float] | None:
        """The fastest of these peers and its median."""
        rates = [(rate, peer) for peer in peers if (rate := self.median(peer, workload)) is not None]
        return (max(rates)[1], max(rates)[0]) if rates else None

    def values(self, factor: str, workload: str) -> list[int]:
        """The values of a scale factor for which any peer has a number."""
        cells = {sample.cell for sample in self.samples if sample.workload == workload}
        return sorted(getattr(cell, factor) for cell in cells if cell.cores == self.cores and cell.factors == {factor})

    def differing_counts(self) -> list[str]:
        """Cells in which peers were given the same number of messages and delivered different numbers of them."""
        seen: defaultdict[tuple[Cell, int], defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for sample in self.samples:
            seen[sample.cell, sample.messages][sample.delivered].add(sample.peer)
        return [
            f"{cell}: " + ", ".join(f"{count:,} on {' and '.join(sorted(who))}" for count, who in counts.items())
            for (cell, _), counts in seen.items()
            if len(counts) > 1
        ]


def _throughput(samples: Iterable[Sample]) -> Throughput:
    forks: defaultdict[int, list[float]] = defaultdict(list)
    for sample in samples:
        forks[sample.fork].append(sample.rate)
    return throughput(forks)


def spaced_of_compact(results: Results, peer: str, workload: str) -> float | None:
    """The medians of JSON with spaces and of compact JSON, as a ratio."""
    return ratio(results.median(peer, workload, SPACED), results.median(peer, workload, COMPACT))


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or denominator is None else numerator / denominator

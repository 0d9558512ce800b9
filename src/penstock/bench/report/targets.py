"""What Penstock wants to reach, and whether it does: ratios of medians, and of means for sizes of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.bench.report.results import CAMEL, NOT_MEASURED, PENSTOCK, VECTORISED, Results, ratio, spaced_of_compact

MET, MISSED, UNKNOWN = "met", "MISSED", "missing"
TIMES_CAMEL = {
    **dict.fromkeys(("RT-1-A", "RT-1-B", "RT-1-C", "RT-2-D", "RT-4-A", "RT-4-B"), 3.0),
    **dict.fromkeys(("RT-5-A", "RT-5-B", "RT-5-C"), 3.0),
    **dict.fromkeys(("MT-1-A", "MT-2-A", "MT-3-A", "MT-3-B", "MT-3-C", "CE-A"), 3.0),
    **dict.fromkeys(("RT-6-A", "RT-6-B", "AGG-A", "AGG-B"), 1.5),
}
"""Routers, splitters, what changes messages, and aggregators."""
OF_CAMEL_EVERYWHERE = 1.0
SPACED_OF_COMPACT = 0.8
OF_VECTORISED = 0.5
OF_SIMPLE_ROUTER = 0.9
OF_ONE_REDELIVERY = 0.25
SIZES = range(1, 15)
SIZES_WITHIN = 2.0
LARGEST = 20


@dataclass(frozen=True, slots=True)
class Target:
    """`found` is what was measured, as text; `status` is met, MISSED, or missing where it cannot be said."""

    text: str
    found: str
    status: str


def targets(results: Results) -> list[Target]:
    return [
        *_against_camel(results),
        _everywhere(results),
        _spelling(results),
        _against_engines(results),
        *_invariance(results),
        *_sizes(results),
    ]


def _against_camel(results: Results) -> Iterator[Target]:
    for name, wanted in TIMES_CAMEL.items():
        found = ratio(results.median(PENSTOCK, name), results.median(CAMEL, name))
        target = _at_least(f"{name}: at least {wanted:g} x Camel", found, wanted)
        relative = ratio(_of_baseline(results, PENSTOCK, name), _of_baseline(results, CAMEL, name))
        beyond = ratio(_beyond_baseline(results, CAMEL, name), _beyond_baseline(results, PENSTOCK, name))
        said = [target.found]
        said += [f"relative to BL {relative:.2f}"] if relative is not None else []
        said += [f"time beyond BL {beyond:.2f}"] if beyond is not None else []
        yield replace(target, found="; ".join(said))


def _everywhere(results: Results) -> Target:
    found = {name: ratio(results.median(PENSTOCK, name), results.median(CAMEL, name)) for name in _workloads(results)}
    return _least("no workload slower than Camel", found, OF_CAMEL_EVERYWHERE)


def _spelling(results: Results) -> Target:
    found = {name: spaced_of_compact(results, PENSTOCK, name) for name in _workloads(results)}
    text = f"every workload: JSON with spaces at least {SPACED_OF_COMPACT:g} of compact JSON"
    return _least(text, found, SPACED_OF_COMPACT)


def _workloads(results: Results) -> tuple[str, ...]:
    return results.run.settings.workloads


def _least(text: str, found: Mapping[str, float | None], wanted: float) -> Target:
    """The workloads that miss it, or the one that is nearest to missing it."""
    known = sorted((rate, name) for name, rate in found.items() if rate is not None)
    missed = [f"{name} {rate:.2f}" for rate, name in known if rate < wanted]
    if missed:
        return Target(text, ", ".join(missed), MISSED)
    if len(known) < len(found):
        return Target(text, f"{len(known)} of {len(found)} workloads are measured", UNKNOWN)
    return Target(text, f"least {known[0][0]:.2f}, {known[0][1]}", MET)


def _of_baseline(results: Results, peer: str, name: str) -> float | None:
    """What is left of a system's own speed without a pattern."""
    return ratio(results.median(peer, name), results.median(peer, "BL"))


def _beyond_baseline(results: Results, peer: str, name: str) -> float | None:
    """The seconds of a message that the pattern itself takes."""
    plain, pattern = results.median(peer, "BL"), results.median(peer, name)
    return 1 / pattern - 1 / plain if plain and pattern and pattern < plain else None


def _against_engines(results: Results) -> Target:
    best = results.best(VECTORISED, "RT-1-A")
    name = f" ({best[0]})" if best else ""
    found = ratio(results.median(PENSTOCK, "RT-1-A"), best[1] if best else None)
    text = f"RT-1-A: at least {OF_VECTORISED:g} of the best vectorised engine{name}"
    return _at_least(text, found, OF_VECTORISED)


def _invariance(results: Results) -> Iterator[Target]:
    for name, base, wanted in (
        ("RT-1-B", "RT-1-A", OF_SIMPLE_ROUTER),
        ("RT-1-C", "RT-1-A", OF_SIMPLE_ROUTER),
        ("MDS-1-F", "MDS-1-A", OF_ONE_REDELIVERY),
    ):
        found = ratio(results.median(PENSTOCK, name), results.median(PENSTOCK, base))
        yield _at_least(f"{name}: at least {wanted:g} of {base}", found, wanted)


def _sizes(results: Results) -> Iterator[Target]:
    rates = {size: results.megabytes(PENSTOCK, results.cell("RT-1-A", size=size)) for size in SIZES}
    known = [rate for rate in rates.values() if rate is not None]
    gaps = [str(size) for size, rate in rates.items() if rate is None]
    apart = max(known) / min(known) if known else None
    text = f"RT-1-A: MB/s of sizes {SIZES[0]} to {SIZES[-1]} within a factor of {SIZES_WITHIN:g}"
    said = "" if apart is None else f"{apart:.2f}"
    if apart is not None and apart > SIZES_WITHIN:
        yield Target(text, said, MISSED)
    elif gaps:
        yield Target(text, f"{said + ', but ' if said else ''}no number for size {', '.join(gaps)}", UNKNOWN)
    else:
        yield Target(text, said, MET)
    yield _largest(results)


def _largest(results: Results) -> Target:
    cell, text = results.cell("RT-1-A", size=LARGEST), f"RT-1-A: size {LARGEST} passes"
    rate, size = results.megabytes(PENSTOCK, cell), results.bytes_per_message(PENSTOCK, cell)
    if rate is not None and size is not None:
        return Target(text, f"{size / 1e6:,.0f} MB at {rate:,.0f} MB/s", MET)
    absent = results.absent(PENSTOCK, cell)
    return Target(text, absent.reason, UNKNOWN if absent.status == NOT_MEASURED else MISSED)


def _at_least(text: str, found: float | None, wanted: float) -> Target:
    if found is None:
        return Target(text, "not both are measured", UNKNOWN)
    return Target(text, f"{found:.2f}", MET if found >= wanted else MISSED)

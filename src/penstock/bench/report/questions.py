"""The six questions of EIPBench, answered from the numbers of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.bench.peers import PEERS
from penstock.bench.report.paper import JAVA, SATURATED_AFTER, TABLE_6, TABLE_7, TABLES
from penstock.bench.report.results import Results
from penstock.bench.schedule import Cell

_GAIN = 1.05


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, and what each peer says to it; `paper` is what the paper found."""

    name: str
    question: str
    sentences: tuple[str, ...]
    paper: str


def answers(results: Results) -> list[Answer]:
    return [
        _answer(
            results, "Q1", "What is the impact of complex routing conditions?", _complex,
            f"{_printed('RT-1-C', JAVA)} with Java/AC, {_printed('RT-1-C', TABLES)} with TIP/AC",
        ),
        _answer(
            results, "Q2", "What is the impact of multiple route branchings?", _branches,
            f"{_printed('RT-1-B', JAVA)} with Java/AC, {_printed('RT-1-B', TABLES)} with TIP/AC",
        ),
        _answer(
            results, "Q3", "What is the impact of message delivery semantics?", _delivery,
            f"with Java/AC 32 redeliveries reach {_of_redelivery()} of one, "
            "and resequencer and idempotent receiver are about as fast as a filter",
        ),
        _answer(results, "Q4", "What is the impact of message sizes?", _sizes, "an immense impact of big messages"),
        _answer(
            results, "Q5", "What is the impact of concurrent users?", _users,
            f"Java/AC is saturated after {2**SATURATED_AFTER} users",
        ),
        _answer(
            results, "Q6", "What is the potential of micro-batching?", _batches,
            "TIP/AC gains more from batches than from threads",
        ),
    ]  # fmt: skip


def _answer(
    results: Results, name: str, question: str, sentence: Callable[[Results, str], str | None], paper: str
) -> Answer:
    said = {peer: sentence(results, peer) for peer in results.peers}
    sentences = [f"{PEERS[peer].title}: {text}." for peer, text in said.items() if text]
    silent = [PEERS[peer].title for peer, text in said.items() if not text]
    if silent:
        sentences.append(f"Not measured: {', '.join(silent)}.")
    return Answer(name, question, tuple(sentences), f"The paper: {paper}.")


def _complex(results: Results, peer: str) -> str | None:
    return _compared(results, peer, "RT-1-C", "the complex condition")


def _branches(results: Results, peer: str) -> str | None:
    return _compared(results, peer, "RT-1-B", "five branches")


def _compared(results: Results, peer: str, name: str, what: str) -> str | None:
    found, base = results.rate(peer, name), results.rate(peer, "RT-1-A")
    if found is None or base is None:
        return None
    return f"with {what} ({name}) it reaches {found / base:.0%} of the simple router (RT-1-A)"


def _delivery(results: Results, peer: str) -> str | None:
    parts = []
    least, most = results.rate(peer, "MDS-1-A"), results.rate(peer, "MDS-1-F")
    if least is not None and most is not None:
        parts.append(f"32 redeliveries of every message reach {most / least:.0%} of one")
    base = results.rate(peer, "RT-1-A-filter")
    for name, what in (("MDS-2-10", "the resequencer (10)"), ("MDS-3-B", "the idempotent receiver")):
        rate = results.rate(peer, name)
        if base is not None and rate is not None:
            parts.append(f"{what} reaches {rate / base:.0%} of a filter")
    return "; ".join(parts) or None


def _sizes(results: Results, peer: str) -> str | None:
    cells = [results.cell("RT-1-A", size=size) for size in results.values("size", "RT-1-A")]
    found = [(cell, rate) for cell in cells if (rate := results.megabytes(peer, cell)) is not None]
    if len(found) < 2:
        return None
    rates = [rate for _, rate in found]
    first, last = _bytes(results, peer, found[0][0]), _bytes(results, peer, found[-1][0])
    return (
        f"from {first} to {last} per message it moves {min(rates):,.0f} to {max(rates):,.0f} MB/s, "
        f"a factor of {max(rates) / min(rates):.1f}"
    )


def _users(results: Results, peer: str) -> str | None:
    counts = results.values("users", "RT-1-A")
    found = [(n, rate) for n in counts if (rate := results.mean(peer, results.cell("RT-1-A", users=n))) is not None]
    if len(found) < 2:
        return None
    best = max(rate for _, rate in found)
    enough = next(count for count, rate in found if rate * _GAIN >= best)
    saturated = "one user is enough" if enough == 1 else f"it is saturated with {enough} users"
    return f"the best number of users reaches {best / found[0][1]:.2f} x one user; {saturated}"


def _batches(results: Results, peer: str) -> str | None:
    counts = results.values("batch", "RT-1-A")
    found = [(n, rate) for n in counts if (rate := results.mean(peer, results.cell("RT-1-A", batch=n))) is not None]
    if len(found) < 2:
        return None
    (first, low), (last, high) = found[0], found[-1]
    return f"batches of {last:,} reach {high / low:,.1f} x batches of {first:,}"


def _bytes(results: Results, peer: str, cell: Cell) -> str:
    return human_bytes(results.bytes_per_message(peer, cell) or 0.0)


def human_bytes(count: float) -> str:
    """Like "1.1 kB" or "512 MB"."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.1f} {unit}" if count < 10 and unit != "B" else f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _printed(name: str, column: str) -> str:
    return f"{TABLE_6[name][column].mean / TABLE_6['RT-1-A'][column].mean:.0%}"


def _of_redelivery() -> str:
    return f"{TABLE_7['MDS-1-F'][JAVA].mean / TABLE_7['MDS-1-A'][JAVA].mean:.0%}"

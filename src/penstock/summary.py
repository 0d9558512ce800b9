"""The summary of a run: what became of its messages in numbers, their sum, and the text that people read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True)
class Step:
    """What a step did: received + copied = sent + filtered + dead + held.

    `copied` is what it made beside what came in, less than zero where it merges. `held` is how many more wait here
    than before, for other messages, for a time or for another try.
    """

    received: int = 0
    sent: int = 0
    filtered: int = 0
    dead: int = 0
    held: int = 0
    copied: int = 0

    @property
    def conserved(self) -> bool:
        return self.received + self.copied == self.sent + self.filtered + self.dead + self.held

    def as_dict(self) -> dict[str, int]:
        return {"in": self.received, "out": self.sent, "filtered": self.filtered, "dead": self.dead, "held": self.held,
                "copied": self.copied}  # fmt: skip

    def __add__(self, other: Step) -> Step:
        return Step(*(left + right for left, right in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Latency:
    """From the time of a message to the time it was published, in seconds.

    Of how many messages, their sum, the longest, and the longest of the last batch.
    """

    messages: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    last: float = 0.0

    @property
    def mean(self) -> float:
        return self.seconds / self.messages if self.messages else 0.0

    def as_dict(self) -> dict[str, float]:
        return {"messages": self.messages, "mean": round(self.mean, 3), "longest": round(self.longest, 3)}

    def __add__(self, other: Latency) -> Latency:
        return Latency(
            self.messages + other.messages, self.seconds + other.seconds, max(self.longest, other.longest),
            other.last if other.messages else self.last,
        )  # fmt: skip


_Sum = TypeVar("_Sum", Step, Latency)


@dataclass(frozen=True, slots=True)
class Summary:
    """One run, one micro-batch, or several of them added together.

    `copied` is what patterns made beside what came in; an aggregator, which makes one of many, makes it less.
    `filtered` is counted by "route.step". `held` is how many more messages wait in state than before, so that
    batches add up. `steps` has the numbers of every "route.step", `waiting` how many messages wait at each at the
    end; `latency` is known of streams, by channel, and so is `step_latency`, by "route.step". `advice` is what to do
    about files that could not be read.
    """

    app: str
    batches: int = 0
    received: int = 0
    copied: int = 0
    delivered: Mapping[str, int] = field(default_factory=dict)
    filtered: Mapping[str, int] = field(default_factory=dict)
    dead: int = 0
    held: int = 0
    seconds: float = 0.0
    steps: Mapping[str, Step] = field(default_factory=dict)
    latency: Mapping[str, Latency] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    step_latency: Mapping[str, Latency] = field(default_factory=dict)
    advice: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """Messages that came in and are nowhere; 0 unless Penstock itself is wrong."""
        known = sum(self.delivered.values()) + sum(self.filtered.values()) + self.dead + self.held
        return self.received + self.copied - known

    @property
    def conserved(self) -> bool:
        return self.missing == 0

    @property
    def rate(self) -> float:
        """Messages received per second."""
        return self.received / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "app": self.app,
            "batches": self.batches,
            "received": self.received,
            "copied": self.copied,
            "delivered": dict(self.delivered),
            "filtered": dict(self.filtered),
            "dead": self.dead,
            "held": self.held,
            "seconds": self.seconds,
            "steps": {name: step.as_dict() for name, step in self.steps.items()},
            "latency": {channel: latency.as_dict() for channel, latency in self.latency.items()},
            "step_latency": {name: latency.as_dict() for name, latency in self.step_latency.items()},
            "waiting": dict(self.waiting),
            "advice": list(self.advice),
            "conserved": self.conserved,
            "rate": round(self.rate, 1),
        }

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.app,
            self.batches + other.batches,
            self.received + other.received,
            self.copied + other.copied,
            _added(self.delivered, other.delivered),
            _added(self.filtered, other.filtered),
            self.dead + other.dead,
            self.held + other.held,
            self.seconds + other.seconds,
            _merged(self.steps, other.steps, Step()),
            _merged(self.latency, other.latency, Latency()),
            other.waiting if other.batches else self.waiting,
            _merged(self.step_latency, other.step_latency, Latency()),
            self.advice + other.advice,
        )

    def __str__(self) -> str:
        return text(self)


def _merged(left: Mapping[str, _Sum], right: Mapping[str, _Sum], nothing: _Sum) -> dict[str, _Sum]:
    return {name: left.get(name, nothing) + right.get(name, nothing) for name in {**left, **right}}


def _added(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    # A channel that got nothing stays in the table: its zero is a result.
    total = Counter(left)
    total.update(right)
    return dict(total)


def text(summary: Summary) -> str:
    """The summary as a small table, with the equation that shows that no message was lost."""
    batches = "1 batch" if summary.batches == 1 else f"{summary.batches:,} batches"
    head = f"{summary.app}: {batches} in {summary.seconds:.1f} s, {summary.rate:,.0f} messages/s"
    rows = list(_rows(summary))
    labels = max(len(label) for label, _, _ in rows)
    names = max(len(name) for _, name, _ in rows)
    numbers = max(len(f"{count:,}") for _, _, count in rows)
    table = [f"  {label:<{labels}}  {name:<{names}}  {count:>{numbers},}" for label, name, count in rows]
    return "\n".join([head, *table, f"  {equation(summary)}", *summary.advice])


def _rows(summary: Summary) -> Iterator[tuple[str, str, int]]:
    yield "in", "", summary.received
    if summary.copied:
        yield "copied" if summary.copied > 0 else "merged", "", abs(summary.copied)
    for label, counts in (("out", summary.delivered), ("filtered", summary.filtered)):
        for index, name in enumerate(sorted(counts)):
            yield label if index == 0 else "", name, counts[name]
    yield "dead", "", summary.dead
    if summary.held:
        yield "held", "", summary.held


def steps_text(summary: Summary) -> str:
    """What every step did, as a table; copies only where there are any, the mean latency only where it is known."""
    shown = [name for name in Step().as_dict() if name != "copied" or any(s.copied for s in summary.steps.values())]
    rows = [("step", *shown, *(["latency"] if summary.step_latency else []))]
    for title, step in summary.steps.items():
        counts, cells = step.as_dict(), [title]
        cells += [f"{counts[name]:,}" for name in shown]
        if summary.step_latency:
            latency = summary.step_latency.get(title)
            cells.append(f"{latency.mean:,.2f} s" if latency else "-")
        rows.append(tuple(cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(f"  {row[0]:<{widths[0]}}" + "".join(
        f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)) for row in rows)  # fmt: skip


def equation(summary: Summary) -> str:
    """`1,000 in = 900 out + 80 filtered + 20 dead`, and whether it holds."""
    left = f"{summary.received:,} in"
    if summary.held < 0:
        left += f" + {-summary.held:,} held before"
    if summary.copied:
        left += f" + {summary.copied:,} copied" if summary.copied > 0 else f" - {-summary.copied:,} merged"
    right = [f"{sum(summary.delivered.values()):,} out", f"{sum(summary.filtered.values()):,} filtered",
             f"{summary.dead:,} dead"]  # fmt: skip
    if summary.held > 0:
        right.append(f"{summary.held:,} held")
    sign = "=" if summary.conserved else "≠"
    verdict = ""
    if not summary.conserved:
        verdict = f"  ({abs(summary.missing):,} {'lost' if summary.missing > 0 else 'too many'})"
    return f"{left} {sign} {' + '.join(right)}{verdict}"

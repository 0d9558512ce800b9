"""Count messages in tasks, by step and by sink, and add the counts up in the driver."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.failures import DECODE
from penstock.kernel.block import Numbers
from penstock.kernel.flow import Ends
from penstock.kernel.times import Times
from penstock.plan.plan import Plan
from penstock.spark.write.intent import Counts
from penstock.summary import Step

_SINK = "sink"


@dataclass
class Tally:
    """How many messages each step and each sink had; `times` has their times, if the run asks for these.

    `waits` says how many more messages wait for each step than before; `due` is when the first and the last of those
    that began to wait in this pass are due.
    """

    received: int = 0
    delivered: Counter[str] = field(default_factory=Counter)
    steps: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    times: defaultdict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    waits: Counter[str] = field(default_factory=Counter)
    due: tuple[int, int] | None = None

    def count(self, ends: Ends, times: Numbers | None) -> None:
        """Add the ends of a block; `times` are those of the messages as they arrived."""
        for title, origins in ends.came.items():
            self._came(title, origins, times)
        for title, numbers in ends.steps.items():
            self.steps[title].update(numbers)
        for channel, blocks in ends.delivered.items():
            self.delivered[channel] += sum(map(len, blocks))
            self._came(f"{_SINK} {channel}", (block.origin for block in blocks), times)

    def decoded(self, route: str, count: int, bad: list[int], times: Numbers | None) -> None:
        title = f"{route}.{DECODE}"
        self.steps[title].update(received=count, sent=count - len(bad), dead=len(bad))
        self._came(title, [np.arange(count)], times)

    def began_to_wait(self, title: str, due: Numbers) -> None:
        self.waits[title] += len(due)
        self._due(int(due.min()), int(due.max()))

    def _due(self, earliest: int, latest: int) -> None:
        known = self.due or (earliest, latest)
        self.due = min(known[0], earliest), max(known[1], latest)

    def _came(self, name: str, origins: Iterable[Numbers], times: Numbers | None) -> None:
        for origin in origins if times is not None else ():
            if len(origin):
                assert times is not None
                self.times[name] += _times_of(times[origin])

    def note(self) -> str:
        times = {name: [one.messages, one.mean, one.earliest] for name, one in self.times.items()}
        return json.dumps({**vars(self), "times": times})

    def __iadd__(self, note: Mapping[str, Any]) -> Tally:
        self.received += note["received"]
        self.delivered.update(note["delivered"])
        self.waits.update(note["waits"])
        for title, numbers in note["steps"].items():
            self.steps[title].update(numbers)
        for name, times in note["times"].items():
            self.times[name] += Times(*times)
        if note["due"]:
            self._due(*note["due"])
        return self

    def counts(self, plan: Plan, same: float | None) -> Counts:
        """All counts of the pass. `same` is one time for all messages, where they have none of their own."""
        titles = [f"{entry.route}.{DECODE}" for entry in plan.entries] + [stage.title for stage in plan.stages()]
        steps = {title: Step(**self.steps[title]) for title in titles}
        sinks = {outlet.channel: self.delivered[outlet.channel] for outlet in plan.outlets}
        return Counts(
            sinks,
            {title: step.filtered for title, step in steps.items() if step.filtered},
            sum(step.dead for step in steps.values()),
            sum(step.copied for step in steps.values()),
            sum(step.held for step in steps.values()),
            steps,
            self._known({channel: (f"{_SINK} {channel}", count) for channel, count in sinks.items()}, same),
            self._known({title: (title, step.received) for title, step in steps.items()}, same),
        )

    def _known(self, names: Mapping[str, tuple[str, int]], same: float | None) -> dict[str, tuple[float, float]]:
        if same is not None:
            return {name: (same, same) for name, (_, count) in names.items() if count}
        return {name: known for name, (counted, _) in names.items() if (known := self.times[counted].known) is not None}


def _times_of(times: Numbers) -> Times:
    """The mean and the earliest of these times; NaN is an unknown time."""
    known = times[~np.isnan(times)]
    return Times(len(times), float(known.mean()), float(known.min())) if len(known) else Times(len(times))

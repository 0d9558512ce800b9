"""What the tasks of a direct run have counted, on the way to the driver."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.plan.plan import Plan
from penstock.reference.run import DECODE
from penstock.spark.direct.rows import Numbers, Rows, times_of
from penstock.spark.frame import COPIED, Places
from penstock.spark.times import Times

Death = tuple[int, str, str, str, str]
"""A message that died, by its place in the block, with the route, the step, the error and the reason."""


@dataclass
class Tally:
    """Messages by their last place, by the bits of steps, and bad ones by the step they died at.

    `times` are those of each of these, if the run asks for them. `groups` are those that a task put together,
    `gathered` the files of messages that wait for it.
    """

    received: int = 0
    groups: int = 0
    places: Counter[int] = field(default_factory=Counter)
    bits: Counter[int] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    times: defaultdict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    gathered: list[str] = field(default_factory=list)

    def count(self, rows: Rows) -> None:
        self.bits.update(rows.bits)
        lowest = int(rows.at.min()) if len(rows.at) else 0
        counts = np.bincount(rows.at - lowest)
        found = {lowest + int(place): int(counts[place]) for place in np.flatnonzero(counts)}
        self.places.update(found)
        if rows.times is not None:
            for place in found:
                self.times[f"place {place}"] += times_of(rows.times[rows.body[rows.at == place]])
            for bit, came in rows.came.items():
                self.times[f"bit {bit}"] += came

    def bury(self, dead: Iterable[Death], times: Numbers | None) -> None:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for index, route, step, _, _ in dead:
            found[f"{route}.{step}"].append(index)
        for title, indexes in found.items():
            self.bad[title] += len(indexes)
            if times is not None:
                self.times[f"bad {title}"] += times_of(times[indexes])

    def note(self) -> str:
        times = {name: [one.messages, one.mean, one.earliest] for name, one in self.times.items()}
        return json.dumps({**vars(self), "times": times})

    def __iadd__(self, note: Mapping[str, Any]) -> Tally:
        self.received += note["received"]
        self.groups += note["groups"]
        self.gathered += note["gathered"]
        self.places.update({int(place): count for place, count in note["places"].items()})
        self.bits.update({int(bit): count for bit, count in note["bits"].items()})
        self.bad.update(note["bad"])
        for name, times in note["times"].items():
            self.times[name] += Times(*times)
        return self

    def observed(self, plan: Plan) -> dict[str, Any]:
        """The numbers under the names that Spark would have counted them by."""
        places = Places.of(plan)
        found: dict[str, Any] = {}
        for channel, place in places.sinks.items():
            found |= self._named(f"sink {channel}", f"place {place}", self.places[place])
        for entry in plan.entries:
            title = f"{entry.route}.{DECODE}"
            found |= self._named(f"dead {title}", f"bad {title}", self.bad[title])
        for (kind, _), bit in places.marks.items():
            found |= self._named(f"bit {bit}", "" if kind == COPIED else f"bit {bit}", self.bits[bit])
        found |= {f"filtered {stage.title}": self.places[places.filtered(stage)] for stage in plan.stages()}
        return found | {f"dead {stage.title}": self.bad[stage.title] for stage in plan.stages()}

    def _named(self, name: str, times: str, count: int) -> dict[str, Any]:
        known = self.times[times].known if times in self.times else None
        return {name: count} | ({} if known is None else {f"time {name}": known[0], f"earliest {name}": known[1]})

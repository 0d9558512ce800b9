"""The driver's view of an app's state: which files count after which batch, and what time each batch has."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.spark.state.store import Run
from penstock.spark.state.task import Moment
from penstock.spark.write.durable import write_whole

BUCKETS = 8
"""Into how many tasks the keys of a step are divided; an app keeps the number it began with."""

KEPT_BATCHES = 3
"""Manifests that stay: a batch may be repeated, and reads the one before it."""


@dataclass(frozen=True)
class Snapshot:
    """What all steps hold before a batch, the moment of the batch, and what a stop means to steps that do not say."""

    directory: str
    buckets: int
    moment: Moment
    on_stop: str
    steps: Mapping[str, Mapping[int, list[Run]]]

    def runs(self, title: str) -> Mapping[int, list[Run]]:
        return self.steps.get(title, {})


class StateTable:
    """A directory with a manifest per batch, a clock per batch, and the runs that the manifests name."""

    def __init__(self, directory: str, on_stop: str, buckets: int = BUCKETS) -> None:
        self.directory, self.on_stop = directory, on_stop
        os.makedirs(self._runs, exist_ok=True)
        newest = self._newest(None)
        self.buckets: int = newest["buckets"] if newest else buckets

    @property
    def _runs(self) -> str:
        return os.path.join(self.directory, "runs")

    def before(self, batch: int, stops: bool = False) -> Snapshot:
        """The state that a batch starts with. The batch's clock is written down: a repeated batch has the same."""
        newest = self._newest(batch)
        steps = {
            title: {int(number): [Run(os.path.join(self._runs, name), *rest) for name, *rest in runs]
                    for number, runs in buckets.items()}
            for title, buckets in (newest["steps"] if newest else {}).items()
        }  # fmt: skip
        return Snapshot(self._runs, self.buckets, Moment(self._clock(batch), batch, stops), self.on_stop, steps)

    def publish(self, batch: int, notes: Iterable[Mapping[str, Any]]) -> None:
        """The manifest after a batch: that of the batch before it, changed by what the tasks reported."""
        newest = self._newest(batch)
        steps: dict[str, dict[str, Any]] = dict(newest["steps"]) if newest else {}
        for note in notes:
            runs = [[os.path.basename(path), rows, earliest] for path, rows, earliest in note["runs"]]
            steps[note["step"]] = {**steps.get(note["step"], {}), str(note["bucket"]): runs}
        record = {"batch": batch, "buckets": self.buckets, "steps": steps}
        write_whole(self._manifest(batch), json.dumps(record).encode())
        self._clean(batch)

    def earliest(self) -> int | None:
        """The next time at which something is due, in microseconds, if anything waits for a time."""
        newest = self._newest(None)
        steps = newest["steps"].values() if newest else ()
        times = [run[2] for buckets in steps for runs in buckets.values() for run in runs]
        return min(times, default=None)

    def _clock(self, batch: int) -> int:
        path = os.path.join(self.directory, f"clock-{batch:09d}.json")
        known = read_record(path)
        if known is not None:
            return int(known["now"])
        last = max((int(record["now"]) for record in self._clocks(batch)), default=0)
        now = max(time.time_ns() // 1000, last + 1)
        write_whole(path, json.dumps({"now": now}).encode())
        return now

    def _clocks(self, batch: int) -> list[dict[str, Any]]:
        names = [name for name in os.listdir(self.directory) if name.startswith("clock-")]
        records = (read_record(os.path.join(self.directory, name)) for name in names if _number(name) < batch)
        return [record for record in records if record]

    def _manifest(self, batch: int) -> str:
        return os.path.join(self.directory, f"state-{batch:09d}.json")

    def _newest(self, batch: int | None) -> dict[str, Any] | None:
        numbers = [number for number in self._batches("state-") if batch is None or number < batch]
        return read_record(self._manifest(max(numbers))) if numbers else None

    def _batches(self, prefix: str) -> list[int]:
        return [_number(name) for name in os.listdir(self.directory) if name.startswith(prefix)]

    def _clean(self, batch: int) -> None:
        """Forget old manifests and clocks, and the runs that only they named."""
        for prefix in ("state-", "clock-"):
            for number in self._batches(prefix):
                if number <= batch - KEPT_BATCHES:
                    os.remove(os.path.join(self.directory, f"{prefix}{number:09d}.json"))
        kept = [read_record(self._manifest(number)) for number in self._batches("state-")]
        steps = [buckets for record in kept if record for buckets in record["steps"].values()]
        named = {run[0] for buckets in steps for runs in buckets.values() for run in runs}
        for name in os.listdir(self._runs):
            if name not in named:
                os.remove(os.path.join(self._runs, name))


def _number(name: str) -> int:
    return int(name.split("-")[1].split(".")[0])


def read_record(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            record: dict[str, Any] = json.load(file)
            return record
    except FileNotFoundError:
        return None

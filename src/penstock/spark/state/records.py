"""The records of a stream's state: a manifest for every batch and the clock of every batch, as JSON files."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from penstock.durable import write_whole
from penstock.kernel.state.store import NEVER

KEPT_BATCHES = 3
"""Manifests that stay: a batch may be repeated, and reads the one before it."""

Manifest = dict[str, Any]


class Records:
    """The directory that holds them."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    @property
    def last_batch(self) -> int | None:
        return max(self._batches("state-"), default=None)

    def newest(self, before: int | None = None) -> Manifest | None:
        """The manifest of the last batch, or of the last one before another."""
        numbers = [number for number in self._batches("state-") if before is None or number < before]
        return self.manifest(max(numbers)) if numbers else None

    def manifest(self, batch: int) -> Manifest | None:
        return _read(self._path("state-", batch))

    def manifests(self) -> list[Manifest]:
        found = (self.manifest(number) for number in self._batches("state-"))
        return [manifest for manifest in found if manifest]

    def write(self, manifest: Manifest) -> None:
        """From now on this is the state after its batch; manifests and clocks of long ago are forgotten."""
        batch: int = manifest["batch"]
        write_whole(self._path("state-", batch), json.dumps(manifest).encode())
        for kind in ("state-", "clock-"):
            for number in self._batches(kind):
                if number <= batch - KEPT_BATCHES:
                    os.remove(self._path(kind, number))

    def clock(self, batch: int) -> int:
        """The time of a batch in microseconds: later than all before it, and the same when it is repeated."""
        known = _read(self._path("clock-", batch))
        if known is not None:
            return int(known["now"])
        earlier = (_read(self._path("clock-", number)) for number in self._batches("clock-") if number < batch)
        last = max((int(record["now"]) for record in earlier if record), default=0)
        now = max(time.time_ns() // 1000, last + 1)
        write_whole(self._path("clock-", batch), json.dumps({"now": now}).encode())
        return now

    def earliest(self) -> int | None:
        """The next time at which something is due, in microseconds, if anything waits for a time."""
        newest = self.newest()
        if newest is None:
            return None
        times = [run[2] for buckets in newest["steps"].values() for runs in buckets.values() for run in runs]
        times += [max(room["earliest"], newest["now"] + 1) for room in newest["waiting"]]
        earliest = min(times, default=NEVER)
        return None if earliest == NEVER else earliest

    def _batches(self, kind: str) -> list[int]:
        names = os.listdir(self.directory) if os.path.isdir(self.directory) else []
        return [int(name.split("-")[1].split(".")[0]) for name in names if name.startswith(kind)]

    def _path(self, kind: str, batch: int) -> str:
        return os.path.join(self.directory, f"{kind}{batch:09d}.json")


def _read(path: str) -> Manifest | None:
    try:
        with open(path, encoding="utf-8") as file:
            record: Manifest = json.load(file)
            return record
    except FileNotFoundError:
        return None

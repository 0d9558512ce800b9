"""The driver's view of an app's state: which files count after which batch, and the clock of each batch."""

from __future__ import annotations

import glob
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import ChangedApp
from penstock.kernel.state.algorithm import Moment
from penstock.kernel.state.keys import Keys
from penstock.kernel.state.receiving import PAYLOAD, oldest_batch
from penstock.kernel.state.store import LEADING, Run, gone, write_run
from penstock.spark.state.records import Records

BUCKETS = 8
"""Into how many tasks the keys of a step are divided unless a stream says otherwise when it begins."""

WAITING_ENDING = ".arrow"
"""The ending of files with messages that wait for a later batch."""

KEPT_REPLAYS = 10
"""How many keys of replays are kept, to know whether an interrupted replay is already in the state."""


@dataclass(frozen=True)
class Snapshot:
    """The state of all steps before a batch, the clock and number of the batch, and `on_stop` for steps without one.

    Messages in the `waiting` files that became due after `since` are to be tried again. `ages` counts, for steps with
    `keep_last`, the keys that each batch brought. Without a directory no batch follows, and no state is written.
    """

    directory: str | None
    buckets: int
    moment: Moment
    on_stop: str
    since: int
    waiting: tuple[str, ...]
    steps: Mapping[str, Mapping[int, list[Run]]]
    ages: Mapping[str, Mapping[int, int]]

    def runs(self, title: str) -> Mapping[int, list[Run]]:
        return self.steps.get(title, {})


@dataclass(frozen=True)
class Contents:
    """What the state has, by step: messages, messages that will be tried again, and all rows, also those of keys."""

    messages: Mapping[str, int]
    waiting: Mapping[str, int]
    rows: Mapping[str, int]


class StateTable:
    """The records in a directory, and the files that they name."""

    def __init__(self, directory: str, on_stop: str, buckets: int | None = None) -> None:
        """Into so many `buckets` keys are divided from the first batch on; another number later on is an error."""
        self.directory, self.on_stop = directory, on_stop
        self.keep_last: dict[str, int] = {}
        """The steps that remember so many keys, by title; for them the keys of each batch are counted."""
        self.titles: frozenset[str] | None = None  # of the app, if known: other steps are forgotten
        self.records = Records(directory)
        os.makedirs(self._runs, exist_ok=True)
        newest = self.records.newest()
        self.buckets: int = newest["buckets"] if newest else buckets or BUCKETS
        if buckets not in (None, self.buckets):
            raise ChangedApp(f"the state in {directory} has {self.buckets} buckets, and {buckets} are asked for",
                             fix=f"leave it at {self.buckets}, or start with a new checkpoint")  # fmt: skip

    @property
    def _runs(self) -> str:
        return os.path.join(self.directory, "runs")

    @property
    def _room(self) -> str:
        return os.path.join(self.directory, "waiting")

    def before(self, batch: int, stops: bool = False) -> Snapshot:
        """The state that a batch starts with; its clock is written down, so that a repeated batch has the same."""
        return self._snapshot(self.records.newest(batch) or {}, batch, self.records.clock(batch), stops)

    def after(self, stops: bool) -> Snapshot | None:
        """The state after the newest batch, for a replay or for the last pass, in which steps flush what they hold."""
        newest = self.records.newest()
        if newest is None or (stops and newest.get("stopped")):
            return None
        now = max(time.time_ns() // 1000, newest["now"])
        return replace(self._snapshot(newest, newest["batch"], now, stops), since=now, waiting=())

    def _snapshot(self, newest: Mapping[str, Any], batch: int, now: int, stops: bool) -> Snapshot:
        steps = {
            title: {int(number): [Run(os.path.join(self._runs, name), *rest) for name, *rest in runs]
                    for number, runs in buckets.items()}
            for title, buckets in newest.get("steps", {}).items()
        }  # fmt: skip
        due = [room for room in newest.get("waiting", []) if room["earliest"] <= now]
        waiting = [os.path.join(self._room, os.path.basename(file)) for room in due for file in room["files"]]
        ages = {
            title: {int(number): count for number, count in counts.items()}
            for title, counts in newest.get("ages", {}).items()
        }
        return Snapshot(
            self._runs, self.buckets, Moment(now, batch, stops), self.on_stop, newest.get("now", 0),
            tuple(waiting), steps, ages,
        )  # fmt: skip

    def publish(self, batch: int, notes: Iterable[str]) -> None:
        """Write the manifest after a batch: the one of the batch before, changed by what the tasks reported."""
        known = self.records.manifest(batch)
        if known is None or not (known.get("stopped") or known.get("amended")):  # what came later must stay
            self._write(batch, self.records.newest(batch) or {}, self.records.clock(batch), notes)

    def amend(self, notes: Iterable[str], replay: str | None = None) -> None:
        """Change the manifest of the newest batch by what came after it: a replay with this key, or else a stop."""
        newest = self.records.newest()
        assert newest is not None
        replayed = newest.get("replayed", []) + ([] if replay is None else [replay])
        changed = {**newest, "replayed": replayed[-KEPT_REPLAYS:]}
        self._write(newest["batch"], changed, newest["now"], notes, stopped=replay is None, amended=True)

    @property
    def is_stopped(self) -> bool:
        """Whether a stop has come after the newest batch."""
        return bool((self.records.newest() or {}).get("stopped"))

    def has_replayed(self, key: str) -> bool:
        return key in (self.records.newest() or {}).get("replayed", [])

    @property
    def newest(self) -> int | None:
        """The number of the newest batch."""
        return self.records.last_batch

    def _write(self, batch: int, newest: Mapping[str, Any], now: int, notes: Iterable[str], **marks: bool) -> None:
        steps: dict[str, dict[str, Any]] = {
            title: dict(runs)
            for title, runs in newest.get("steps", {}).items()
            if self.titles is None or title in self.titles
        }
        ages: dict[str, dict[str, int]] = {title: dict(counts) for title, counts in newest.get("ages", {}).items()}
        waiting = [room for room in newest.get("waiting", []) if room["latest"] > now]
        forgotten: list[dict[str, Any]] = []
        held, waits = (Counter[str](newest.get(name, {})) for name in ("held", "waits"))
        for note in map(json.loads, notes):
            waits.update(note.get("waits", {}))
            if "runs" in note:
                held[note["step"]] += note["held"]
                runs = [[os.path.basename(path), rows, earliest] for path, rows, earliest in note["runs"]]
                steps.setdefault(note["step"], {})[str(note["bucket"])] = runs
                if note["step"] in self.keep_last:
                    counts = ages.setdefault(note["step"], {})
                    counts[str(batch)] = counts.get(str(batch), 0) + note["added"]
            if note.get("waiting", {}).get("files"):
                waiting.append(note["waiting"])
            forgotten += note.get("forget", ())
        self._forget(forgotten, steps, ages, str(batch))
        record = {
            "batch": batch,
            "now": now,
            "buckets": self.buckets,
            "steps": steps,
            "waiting": waiting,
            "ages": {title: self._recent(title, counts) for title, counts in ages.items() if title in self.keep_last},
            "held": {title: count for title, count in held.items() if count},
            "waits": {title: count for title, count in waits.items() if count},
            "replayed": newest.get("replayed", []),
            **marks,
        }
        self.records.write(record)
        self._clean()

    def _recent(self, title: str, counts: Mapping[str, int]) -> dict[str, int]:
        """The batches whose keys are still remembered."""
        oldest = oldest_batch({int(batch): count for batch, count in counts.items()}, self.keep_last[title])
        return {batch: count for batch, count in counts.items() if int(batch) >= oldest}

    def held(self) -> dict[str, int]:
        """How many messages wait at each step after the newest batch, in its state or for another try."""
        newest = self.records.newest() or {}
        return dict(Counter(newest.get("held", {})) + Counter(newest.get("waits", {})))

    def contents(self, pending: Callable[[int], Iterable[str]]) -> Contents:
        """What a new version of the app would find; `pending` gives notes of later batches that are not in it yet."""
        newest = self.records.newest() or {"batch": -1}
        held, waits = (Counter[str](newest.get(name, {})) for name in ("held", "waits"))
        runs = {(title, number): sum(run[1] for run in found)
                for title, buckets in newest.get("steps", {}).items() for number, found in buckets.items()}  # fmt: skip
        for note in map(json.loads, pending(newest["batch"])):
            waits.update(note.get("waits", {}))
            if "runs" in note:
                held[note["step"]] += note["held"]
                runs[note["step"], str(note["bucket"])] = sum(rows for _, rows, _ in note["runs"])
        rows: Counter[str] = Counter()
        for (title, _), count in runs.items():
            rows[title] += count
        return Contents(+held, +waits, +rows)

    def _forget(
        self, keys: list[dict[str, Any]], steps: dict[str, dict[str, Any]], ages: dict[str, dict[str, int]], batch: str
    ) -> None:
        """Delete the keys of messages that failed after a receiver let them pass."""
        buckets: dict[tuple[str, int], set[tuple[int, int]]] = {}
        for key in keys:
            buckets.setdefault((key["step"], key["high"] % self.buckets), set()).add((key["high"], key["low"]))
        for (title, bucket), failed in buckets.items():
            pairs = sorted(failed)
            found = Keys(np.array([high for high, _ in pairs]), np.array([low for _, low in pairs]))
            run = write_run(gone(found, pa.schema([*LEADING, *PAYLOAD])), self._runs)
            runs = steps.setdefault(title, {}).setdefault(str(bucket), [])
            steps[title][str(bucket)] = [*runs, [os.path.basename(run.path), run.rows, run.earliest]]
            if title in self.keep_last:
                ages[title][batch] = ages.setdefault(title, {}).get(batch, 0) - len(pairs)

    def waiting_until(self) -> int | None:
        """When the first message that waits for another try is due, in microseconds."""
        newest = self.records.newest()
        if newest is None:
            return None
        return min((max(room["earliest"], newest["now"] + 1) for room in newest["waiting"]), default=None)

    def check_waiting(self, pending: Callable[[int], Iterable[str]]) -> None:
        """Refuse messages that an earlier version left waiting in files of its own.

        `pending` gives the notes of later batches that are not in the state yet.
        """
        newest = self.records.newest() or {"batch": -1}
        rooms = [json.loads(note).get("waiting", {}) for note in pending(newest["batch"])]
        for room in (*newest.get("waiting", []), *rooms):
            for file in room.get("files", []):
                if not file.endswith(WAITING_ENDING):
                    raise ChangedApp(f"messages wait for another try in {file}, which an earlier version wrote",
                                     fix="let that version run until nothing waits, or start anew")  # fmt: skip

    def _clean(self) -> None:
        """Remove the files of runs, and of messages that wait, which no manifest names any more."""
        kept = self.records.manifests()
        steps = [buckets for record in kept for buckets in record["steps"].values()]
        named = {run[0] for buckets in steps for runs in buckets.values() for run in runs}
        for name in os.listdir(self._runs):
            if name not in named:
                os.remove(os.path.join(self._runs, name))
        rooms = [room for record in kept for room in record["waiting"]]
        wanted = {os.path.basename(file) for room in rooms for file in room["files"]}
        for file in glob.glob(os.path.join(glob.escape(self._room), "*.*")):
            if os.path.basename(file) not in wanted:
                os.remove(file)

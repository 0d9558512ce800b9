"""Check the error budget of an app after a batch is computed and before anything of it is published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet

from penstock.budget import check_batch, messages_of
from penstock.plan.plan import Plan
from penstock.spark.write.frames import staged_frames
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import FRAMES, KEEP, PARQUET, ROWS, Target


def check_budget(plan: Plan, intent: Intent, targets: Mapping[int, Target]) -> None:
    """Raise if the pass has more dead letters than its app allows."""
    counts = intent.counts
    if plan.error_budget is not None and counts.dead:
        messages = messages_of(counts.received, counts.held)
        check_batch(plan.name, plan.error_budget, counts.dead, messages, _errors(intent, targets))


def _errors(intent: Intent, targets: Mapping[int, Target]) -> Counter[str]:
    """The errors and the steps they happened at, read from the staged dead letters; empty if these are not kept."""
    found: Counter[str] = Counter()
    for target in targets.values():
        for file in intent.files if target.dead else ():
            if file.channel == target.name:
                found.update(f"{error} at {route}.{step}" for route, step, error in _read(file.path, target))
    return found


def _read(path: str, target: Target) -> list[tuple[str, str, str]]:
    names = ("route", "step", "error")
    if target.style in (PARQUET, ROWS):
        rows = pyarrow.parquet.read_table(path, columns=list(names)).to_pylist()
    elif target.style == KEEP:
        with pa.memory_map(path) as file:
            rows = [meta["error"] for meta in pa.ipc.open_file(file).read_all().column("meta").to_pylist()]
    elif target.style == FRAMES:
        rows = [json.loads(line) for frame in staged_frames(path) for line in frame.values.to_pylist()]
    else:
        with open(path, "rb") as lines:
            rows = [json.loads(line) for line in lines]
    return [(row["route"], row["step"], row["error"]) for row in rows]

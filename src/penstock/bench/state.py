"""How fast are steps that remember, and does it matter how much they remember?

    python -m penstock.bench.state --keys 100000 1000000 10000000

An aggregator by size and an idempotent receiver as streams from files. Every key is seen once before the clock starts;
then messages with random keys are timed. Answers are checked against plain counting. With `--compare`, the aggregator
is also written with Spark's own `transformWithState`, on fewer messages, because that is all it can do.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from penstock import App, Files, Json, Route, Void, body, collect
from penstock.spark.session import session
from penstock.spark.stream import run_stream

SIZE = 10
TARGET_RATE, TARGET_GROWTH = 50_000.0, 2.0
_LINES = 500_000
_SCHEMA = "k BIGINT, n BIGINT, text STRING"


@dataclass(frozen=True)
class Sample:
    """One timed stream over a state of so many keys."""

    step: str
    keys: int
    messages: int
    seconds: float
    state_bytes: int
    driver_megabytes: int

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


def main() -> None:
    options = _options()
    session("bench-state")
    samples: list[Sample] = []
    for keys in options.keys:
        for step in ("aggregator", "idempotent receiver"):
            samples.append(measure(step, keys, options.messages, Path(options.directory)))
            one = samples[-1]
            each = f"{one.seconds / one.messages * 1e6:6.2f} us"
            size = f"state {one.state_bytes / 1e6:,.0f} MB"
            print(f"{step:20} {keys:>12,} keys  {one.rate:>10,.0f} messages/s  {each}  {size}", flush=True)
    if options.compare:
        rate = _rate_of_spark(options.compare)
        ours = next(sample for sample in samples if sample.step == "aggregator")
        print(f"aggregator with transformWithState, {options.compare:,} keys: {rate:,.0f} messages/s; "
              f"ours at {ours.keys:,} keys is {ours.rate / rate:,.0f} times that")  # fmt: skip
    report(samples)


def _rate_of_spark(keys: int) -> float:
    command = [sys.executable, "-m", "penstock.bench.transform_with_state", str(keys)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def measure(step: str, keys: int, messages: int, parent: Path) -> Sample:
    """Fill the state, then time messages with random keys."""
    parent.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="state-", dir=parent))
    try:
        source, checkpoint = directory / "in", str(directory / "checkpoint")
        source.mkdir()
        random = np.random.default_rng(42)
        first, then = random.permutation(keys), random.integers(0, keys, messages)
        app = _app(step, str(source))
        _write(source, "a", first)
        filled = run_stream(app, checkpoint, once=True).summary
        _write(source, "b", then)
        started = time.monotonic()
        summary = run_stream(app, checkpoint, once=True).summary
        seconds = time.monotonic() - started
        assert filled.conserved, filled
        assert summary.conserved, summary
        assert dict(summary.delivered) == _expected(step, first, then), (summary, _expected(step, first, then))
        files = (directory / "checkpoint" / "penstock-state" / "runs").iterdir()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return Sample(step, keys, messages, seconds, sum(file.stat().st_size for file in files), peak)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _app(step: str, source: str) -> App:
    route = Route("keyed", Files(source, Json(_SCHEMA)))
    if step == "aggregator":
        route = route.aggregate(collect("texts", of="text"), by=body.k, size=SIZE)
    else:
        route = route.idempotent(body.k)
    return App("bench-state", route.to("out", Void()), dead_letters=Void())


def _expected(step: str, first: np.ndarray, then: np.ndarray) -> dict[str, int]:
    if step != "aggregator":
        return {"out": 0}
    counts = np.bincount(then, minlength=len(first)) + 1
    return {"out": int((counts // SIZE).sum())}


def _write(directory: Path, name: str, keys: np.ndarray) -> None:
    """JSON lines, written elsewhere and then moved in: a stream takes a file as it is when it appears."""
    for number, start in enumerate(range(0, len(keys), _LINES)):
        part = directory.parent / f"{name}-{number}.part"
        with open(part, "w", encoding="utf-8") as file:
            file.writelines(_lines(keys[start : start + _LINES], start))
        part.rename(directory / f"{name}-{number:05d}.jsonl")


def _lines(keys: np.ndarray, start: int) -> Iterator[str]:
    for number, key in enumerate(keys.tolist(), start):
        yield f'{{"k":{key},"n":{number},"text":"a message of ordinary length, number {number}"}}\n'


def report(samples: list[Sample]) -> None:
    """The curve, and every target with what was measured."""
    print(json.dumps([asdict(sample) | {"rate": round(sample.rate)} for sample in samples]))
    for step in dict.fromkeys(sample.step for sample in samples):
        mine = sorted((sample for sample in samples if sample.step == step), key=lambda sample: sample.keys)
        smallest, largest = mine[0], mine[-1]
        growth = (largest.seconds / largest.messages) / (smallest.seconds / smallest.messages)
        fast = f"{step} at {smallest.keys:,} keys: {smallest.rate:,.0f} messages/s"
        _say(fast, smallest.rate >= TARGET_RATE, f"{TARGET_RATE:,.0f}")
        if largest.keys > smallest.keys:
            grows = f"{step}: time per message at {largest.keys:,} keys is {growth:.2f} times that"
            _say(grows, growth <= TARGET_GROWTH, f"at most {TARGET_GROWTH}")


def _say(text: str, met: bool, target: str) -> None:
    print(f"{'met   ' if met else 'MISSED'}  {text} (target {target})")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--keys", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000], help="sizes of the state"
    )
    parser.add_argument("--messages", type=int, default=2_000_000, help="timed messages")
    parser.add_argument("--compare", type=int, default=2_000, help="keys for transformWithState; 0 leaves it out")
    parser.add_argument("--directory", default="build/bench", help="where messages and state are kept meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    main()

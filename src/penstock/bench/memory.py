"""Does a stream that runs for long keep its memory?

    python -m penstock.bench.memory --minutes 10

Orders at a steady rate through a router and a receiver that remembers a bounded number of keys. After every batch the
memory of this process, of Java and of the Python workers is noted; the middle third of the run is compared with the
last. `make soak` is about crashes; this is about time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass

from penstock import App, Files, Json, Rate, Route, Void, body
from penstock.spark.session import session
from penstock.spark.stream import run_stream
from penstock.summary import Summary

TARGET = 1.1
_KEYS = 50_000


@dataclass(frozen=True)
class Sample:
    seconds: float
    messages: int
    driver: float
    java: float
    workers: float

    @property
    def total(self) -> float:
        return self.driver + self.java + self.workers


def order(number: int) -> bytes:
    return b'{"id":%d,"total":%d,"note":"an order of ordinary length, made to be measured"}' % (number, number % 1000)


def app_of(directory: str, per_second: int) -> App:
    source = Rate(per_second=per_second, message=order, format=Json("id BIGINT, total BIGINT, note STRING"))
    return App(
        "bench-memory",
        Route("orders", source)
        .idempotent(body.id, keep_last=_KEYS, remember_failed=True)
        .choice({"large": body.total >= 900}, otherwise="small"),
        sinks={"large": Files(f"{directory}/large"), "small": Void()},
        dead_letters=Files(f"{directory}/dead"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the stream runs")
    parser.add_argument("--rate", type=int, default=5_000, help="messages per second")
    options = parser.parse_args()
    samples = measure(options.minutes * 60, options.rate)
    report(samples)


def measure(seconds: float, per_second: int) -> list[Sample]:
    samples: list[Sample] = []
    stop, started = threading.Event(), time.monotonic()
    session("bench-memory")

    def watch(summary: Summary) -> None:
        samples.append(Sample(time.monotonic() - started, summary.received, *resident()))
        one = samples[-1]
        print(f"{one.seconds:6.0f} s {one.messages:>12,} messages   driver {one.driver:6.0f} MB   "
              f"Java {one.java:6.0f} MB   workers {one.workers:6.0f} MB", flush=True)  # fmt: skip
        if one.seconds >= seconds and one.messages:
            stop.set()

    with tempfile.TemporaryDirectory() as directory:
        app = app_of(directory, per_second)
        summary = run_stream(app, f"{directory}/checkpoint", trigger="5 seconds", on_batch=watch, stop=stop).summary
    assert summary.conserved, summary
    assert summary.received == sum(summary.delivered.values()), summary
    return samples


def resident() -> tuple[float, float, float]:
    """The megabytes of this process, of Java below it, and of the Python processes below that."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in below} - below:
        below |= more
    java = {process for process in below if _text(process, "comm").strip() == "java"}
    workers = below - java - {os.getpid()}
    return _megabytes({os.getpid()}), _megabytes(java), _megabytes(workers)


def _megabytes(processes: set[int]) -> float:
    pages = sum(int((_text(process, "statm") or "0 0").split()[1]) for process in processes)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _text(process: int, name: str) -> str:
    try:
        with open(f"/proc/{process}/{name}") as file:
            return file.read()
    except OSError:
        return ""


def report(samples: list[Sample]) -> None:
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    assert middle, "too short: give it more minutes"
    before, after = (statistics.median(one.total for one in part) for part in (middle, last))
    verdict = "met   " if after <= TARGET * before else "MISSED"
    print(f"{verdict}  {samples[-1].messages:,} messages: {before:,.0f} MB in the middle third, "
          f"{after:,.0f} MB in the last ({after / before:.2f} times that, target at most {TARGET})")  # fmt: skip


if __name__ == "__main__":
    main()

"""The numbers of a server as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.metrics import labelled

_GAUGES = (
    "seconds", "connections", "in_flight_bytes", "unsent_bytes", "first", "next", "durable", "segments",
    "stored_bytes", "capacity", "mean_batch", "largest_batch", "available", "available_computed", "latency",
    "throughput",
)  # fmt: skip


def exposition(statistics: dict[str, Any]) -> str:
    """One family for each number; those of partitions and levels have labels."""
    families: dict[str, list[str]] = {}
    for name, labels, value in _samples(statistics):
        families.setdefault(name, []).append(f"penstock_log_{name}{labelled(labels)} {float(value)!r}")
    lines = []
    for name, samples in families.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE penstock_log_{name} {kind}", *samples]
    return "\n".join(lines) + "\n"


def _samples(statistics: dict[str, Any]) -> Iterator[tuple[str, dict[str, str], float]]:
    for name, value in _numbers(statistics):
        yield _full(name, ""), {}, value
    for name, value in _numbers(statistics.get("server", {})):
        yield _full(name, "server_"), {}, value
    for partition in statistics.get("partitions", ()):
        labels = {"topic": str(partition["topic"]), "partition": str(partition["partition"])}
        for name, value in [*_numbers(partition), *_numbers(partition.get("ends", {}))]:
            if name != "partition":
                yield _full(name, "partition_"), labels, value
        yield "partition_broken", labels, partition.get("broken") is not None
        for level in partition.get("levels", ()):
            where = labels | {"level": str(level["level"]), "kind": str(level["kind"])}
            for name, value in _numbers(level):
                if name != "level":
                    yield _full(name, "level_"), where, value


def _numbers(values: dict[str, Any]) -> list[tuple[str, float]]:
    return [(name, value) for name, value in values.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)]  # fmt: skip


def _full(name: str, prefix: str) -> str:
    return f"{prefix}{name}" if name in _GAUGES else f"{prefix}{name}_total"

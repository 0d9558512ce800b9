"""The workloads of EIPBench, and those that HW-EIP adds: what each is called, reads and delivers to. Data only.

What they mean is in `answers`; the messages are in `models`; the systems that run them are in `peers`.
"""

from __future__ import annotations

from dataclasses import dataclass

BASELINE = "baseline"
ROUTING = "routing"
TRANSFORMATION = "transformation"
DELIVERY = "delivery"
COMPOSITION = "composition"
CARS = "cars"
FAMILIES = (BASELINE, ROUTING, TRANSFORMATION, DELIVERY, COMPOSITION, CARS)


@dataclass(frozen=True, slots=True)
class Workload:
    """One benchmark.

    `fewest` is the number of messages below which it means nothing (a sequence of 100,000 needs so many); by `work`
    the number of messages is divided.
    """

    name: str
    title: str
    family: str
    model: str
    channels: tuple[str, ...]
    tables: tuple[str, ...] = ()
    fewest: int = 1
    work: int = 1


_OUT = ("out",)
_CUSTOMERS = ("customers",)
_PRIORITIES = tuple(f"priority-{number}" for number in range(1, 6))
_STATUSES = ("status-F", "status-O", "status-P")
_REDELIVERIES = {"A": 1, "B": 2, "C": 4, "D": 8, "E": 16, "F": 32}
_TRIES = 8
"""The same for all, so that all have as many messages: what a run costs by itself must not tell one from another."""
_SEQUENCES = (10, 100, 1_000, 10_000, 100_000)
_WAYS = (2, 3, 4)


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}-{number}" for number in range(1, count + 1))


_ALL = (
    Workload("BL", "baseline: decoded, and unchanged to one channel", BASELINE, "orders", _OUT),
    Workload("RT-1-A", "content-based router: a simple condition", ROUTING, "orders", ("cheap", "rest")),
    Workload(
        "RT-1-B", "content-based router: five branches", ROUTING, "orders",
        ("cheap", "medium", "old", "pending", "rest"),
    ),
    Workload("RT-1-C", "content-based router: a complex condition", ROUTING, "orders", ("chosen", "rest")),
    Workload("RT-1-A-filter", "message filter: a simple condition", ROUTING, "orders", _OUT),
    Workload("RT-2-D", "content-based router: a join inside the message", ROUTING, "multi", ("europe", "rest")),
    Workload("RT-2-D-filter", "message filter: a join inside the message", ROUTING, "multi", _OUT),
    Workload("RT-3-A", "multicast to one channel", ROUTING, "orders", _numbered("out", 1)),
    Workload("RT-3-B", "multicast to four channels", ROUTING, "orders", _numbered("out", 4)),
    Workload("RT-4-A", "recipient list: one recipient", ROUTING, "orders", _PRIORITIES),
    Workload("RT-4-B", "recipient list: two recipients", ROUTING, "orders", _PRIORITIES + _STATUSES),
    Workload("RT-5-A", "splitter: a collection of 16 into messages", ROUTING, "collections-16", _OUT),
    Workload("RT-5-B", "splitter: every field into a message", ROUTING, "orders", _OUT),
    Workload("RT-5-C", "splitter: six entries with head and tail", ROUTING, "orders", _OUT),
    Workload("RT-6-A", "aggregator: 10 messages into one", ROUTING, "orders", _OUT),
    Workload("RT-6-B", "aggregator: 100 messages into one", ROUTING, "orders", _OUT),
    Workload("MT-1-A", "message translator: six fields", TRANSFORMATION, "orders", _OUT),
    Workload("MT-2-A", "content filter: keep three fields", TRANSFORMATION, "orders", _OUT),
    Workload("MT-3-A", "content enricher: two fields", TRANSFORMATION, "orders", _OUT, _CUSTOMERS),
    Workload("MT-3-B", "content enricher: a nested object", TRANSFORMATION, "orders", _OUT, _CUSTOMERS),
    Workload("MT-3-C", "content enricher: a multi-format message", TRANSFORMATION, "orders", _OUT, _CUSTOMERS),
    *(
        Workload(
            f"MDS-1-{letter}", f"redelivery on exception: {count} for every message", DELIVERY, "orders", _OUT,
            work=_TRIES,
        )
        for letter, count in _REDELIVERIES.items()
    ),
    *(
        Workload(
            f"MDS-2-{count}", f"resequencer: sequences of {count:,}", DELIVERY, f"sequences-{count}", _OUT,
            fewest=count,
        )
        for count in _SEQUENCES
    ),
    Workload("MDS-3-A", "idempotent receiver: no duplicates", DELIVERY, "orders", _OUT),
    Workload("MDS-3-B", "idempotent receiver: duplicates after 100,000", DELIVERY, "duplicates", _OUT),
    *(
        Workload(f"LB-{count}", f"load balancer over {count} channels", ROUTING, "orders", _numbered("route", count))
        for count in _WAYS
    ),
    *(Workload(f"JR-{count}", f"join router of {count} routes", ROUTING, "orders", _OUT) for count in _WAYS),
    Workload("SP-A", "splitter: every field into a message (RT-5-B)", ROUTING, "orders", _OUT),
    Workload("SP-B", "splitter: six entries with head and tail (RT-5-C)", ROUTING, "orders", _OUT),
    Workload("AGG-A", "aggregator: fields into a message", ROUTING, "fields", _OUT),
    Workload("AGG-B", "aggregator: entries into a message", ROUTING, "entries", _OUT),
    Workload("MT-A", "message translator: six fields (MT-1-A)", TRANSFORMATION, "orders", _OUT),
    Workload("CE-A", "content enricher: a copy of every field", TRANSFORMATION, "orders", _OUT),
    Workload("SpAgg-A", "splitter and aggregator of fields", COMPOSITION, "orders", _OUT),
    Workload("SpAgg-B", "splitter and aggregator of entries", COMPOSITION, "orders", _OUT),
    *(
        Workload(f"LBSpAggJR-{count}", f"load balancer, {count} x SpAgg-B, join router", COMPOSITION, "orders", _OUT)
        for count in (3, 4)
    ),
    Workload("cars-normal", "connected cars: as it is drawn", CARS, "cars", _OUT, ("owners",)),
    Workload("cars-sub-parallel", "connected cars: sub-processes in parallel", CARS, "cars", _OUT, ("owners",)),
    Workload("cars-neighbor-merge", "connected cars: neighbours merged", CARS, "cars", _OUT, ("owners",)),
    Workload("cars-early-out", "connected cars: early select, early out", CARS, "cars", _OUT, ("owners",)),
    Workload("cars-early-project", "connected cars: early projection", CARS, "cars", _OUT, ("owners",)),
    Workload("cars-combined", "connected cars: all of these together", CARS, "cars", _OUT, ("owners",)),
)  # fmt: skip
WORKLOADS = {workload.name: workload for workload in _ALL}

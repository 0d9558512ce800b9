"""Splitter and aggregator one after the other, alone and in parallel: HW-EIP section 6.1."""

from __future__ import annotations

from collections.abc import Callable

from penstock import App, Route, join, union
from penstock.bench.workloads.ends import Ends
from penstock.bench.workloads.splitting import HEAD, TAIL


def fields_and_back(ends: Ends) -> App:
    return ends.app("SpAgg-A", Route("orders", ends.source()).split_fields().aggregate(union(), size="parts").to("out"))


def entries_and_back(ends: Ends) -> App:
    route = Route("orders", ends.source()).split_fields(head=HEAD, tail=TAIL).aggregate(union(), size="parts")
    return ends.app("SpAgg-B", route.to("out"))


def in_parallel(count: int) -> Callable[[Ends], App]:
    def build(ends: Ends) -> App:
        numbers = range(1, count + 1)
        branches = [
            Route(f"branch-{number}", f"to-{number}")
            .split_fields(head=HEAD, tail=TAIL)
            .aggregate(union(), size="parts")
            .to(f"from-{number}")
            for number in numbers
        ]
        return ends.app(
            f"LBSpAggJR-{count}",
            Route("orders", ends.source()).balance(*(f"to-{number}" for number in numbers)),
            *branches,
            Route("all", join(*(f"from-{number}" for number in numbers))).to("out"),
        )

    return build


APPS: dict[str, Callable[[Ends], App]] = {
    "SpAgg-A": fields_and_back,
    "SpAgg-B": entries_and_back,
    "LBSpAggJR-3": in_parallel(3),
    "LBSpAggJR-4": in_parallel(4),
}

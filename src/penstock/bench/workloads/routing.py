"""Baseline, content-based router, message filter, multicast, recipient list, load balancer, join router."""

from __future__ import annotations

from collections.abc import Callable

from penstock import App, Route, body, call, item, join
from penstock.bench.workloads.ends import Ends
from penstock.expr.columns import Column

CHEAP = body.OTOTALPRICE < 100_000
MEDIUM = body.OORDERPRIORITY == "3-MEDIUM"
OLD = body.OORDERDATE < "1995-01-01"
PENDING = body.OORDERSTATUS == "P"
EUROPEAN = (body.customer.CACCTBAL > 0) & body.nations.any(
    (item.NNATIONKEY == body.customer.CNATIONKEY) & (item.NREGIONKEY == 3)
)
PRIORITY = call("concat", "priority-", call("substring", body.OORDERPRIORITY, 0, 1))
NUMBERED = body.msgId >= 0
"""True of all of them. What asks nothing of a message would not decode it, and all other systems do."""
PRIORITIES = [f"priority-{number}" for number in range(1, 6)]
STATUSES = [f"status-{letter}" for letter in "FOP"]


def baseline(ends: Ends) -> App:
    return ends.app("BL", Route("orders", ends.source()).filter(NUMBERED).to("out"))


def router(name: str, cases: dict[str, Column]) -> Callable[[Ends], App]:
    def build(ends: Ends) -> App:
        route = Route("intake", ends.source()).choice(dict(cases), otherwise="rest")
        return ends.app(name, route, channels=[*cases, "rest"])

    return build


def message_filter(name: str, condition: Column) -> Callable[[Ends], App]:
    return lambda ends: ends.app(name, Route("intake", ends.source()).filter(condition).to("out"))


def multicast(name: str, count: int) -> Callable[[Ends], App]:
    channels = [f"out-{number}" for number in range(1, count + 1)]
    return lambda ends: ends.app(
        name, Route("orders", ends.source()).filter(NUMBERED).multicast(*channels), channels=channels
    )


def recipient_list(name: str, of: Column, known: list[str]) -> Callable[[Ends], App]:
    return lambda ends: ends.app(name, Route("orders", ends.source()).recipients(of, known), channels=known)


def load_balancer(count: int) -> Callable[[Ends], App]:
    channels = [f"route-{number}" for number in range(1, count + 1)]
    return lambda ends: ends.app(
        f"LB-{count}", Route("orders", ends.source()).filter(NUMBERED).balance(*channels), channels=channels
    )


def join_router(count: int) -> Callable[[Ends], App]:
    """The routes that are joined come from a router by number; what is measured is both."""

    def build(ends: Ends) -> App:
        incoming = {f"in-{number}": call("modulo", body.msgId, count) == number for number in range(count)}
        last = incoming.popitem()[0]
        return ends.app(
            f"JR-{count}",
            Route("orders", ends.source()).choice(dict(incoming), otherwise=last),
            Route("all", join(*incoming, last)).to("out"),
        )

    return build


APPS: dict[str, Callable[[Ends], App]] = {
    "BL": baseline,
    "RT-1-A": router("RT-1-A", {"cheap": CHEAP}),
    "RT-1-B": router("RT-1-B", {"cheap": CHEAP, "medium": MEDIUM, "old": OLD, "pending": PENDING}),
    "RT-1-C": router("RT-1-C", {"chosen": (CHEAP & MEDIUM & OLD) | PENDING}),
    "RT-1-A-filter": message_filter("RT-1-A-filter", CHEAP),
    "RT-2-D": router("RT-2-D", {"europe": EUROPEAN}),
    "RT-2-D-filter": message_filter("RT-2-D-filter", EUROPEAN),
    "RT-3-A": multicast("RT-3-A", 1),
    "RT-3-B": multicast("RT-3-B", 4),
    "RT-4-A": recipient_list("RT-4-A", PRIORITY, PRIORITIES),
    "RT-4-B": recipient_list(
        "RT-4-B", call("concat", PRIORITY, ",status-", body.OORDERSTATUS), [*PRIORITIES, *STATUSES]
    ),
    **{f"LB-{count}": load_balancer(count) for count in (2, 3, 4)},
    **{f"JR-{count}": join_router(count) for count in (2, 3, 4)},
}

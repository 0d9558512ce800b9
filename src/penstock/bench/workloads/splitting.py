"""Splitter and aggregator, and both after one another."""

from __future__ import annotations

from collections.abc import Callable

from penstock import App, Route, body, call, collect, union
from penstock.bench.workloads.ends import Ends

HEAD, TAIL = ["msgId", "type", "OORDERKEY", "OCUSTKEY"], ["OCOMMENT"]
FIELDS = 11
ENTRIES = 6


def split_collection(ends: Ends) -> App:
    return ends.app("RT-5-A", Route("collections", ends.source()).split(body.orders).to("out"))


def split_fields(name: str) -> Callable[[Ends], App]:
    return lambda ends: ends.app(name, Route("orders", ends.source()).split_fields().to("out"))


def split_entries(name: str) -> Callable[[Ends], App]:
    return lambda ends: ends.app(name, Route("orders", ends.source()).split_fields(head=HEAD, tail=TAIL).to("out"))


def aggregate_orders(name: str, size: int) -> Callable[[Ends], App]:
    group = call("to_integer", body.msgId / size)
    return lambda ends: ends.app(
        name, Route("orders", ends.source()).aggregate(collect("orders"), by=group, size=size).to("out")
    )


def aggregate_fields(ends: Ends) -> App:
    return ends.app("AGG-A", Route("fields", ends.source()).aggregate(union(), by=body.order, size=FIELDS).to("out"))


def aggregate_entries(ends: Ends) -> App:
    return ends.app("AGG-B", Route("entries", ends.source()).aggregate(union(), by=body.msgId, size=ENTRIES).to("out"))


APPS: dict[str, Callable[[Ends], App]] = {
    "RT-5-A": split_collection,
    "RT-5-B": split_fields("RT-5-B"),
    "RT-5-C": split_entries("RT-5-C"),
    "RT-6-A": aggregate_orders("RT-6-A", 10),
    "RT-6-B": aggregate_orders("RT-6-B", 100),
    "SP-A": split_fields("SP-A"),
    "SP-B": split_entries("SP-B"),
    "AGG-A": aggregate_fields,
    "AGG-B": aggregate_entries,
}

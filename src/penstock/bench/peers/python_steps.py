"""The steps that look at one message at a time, in plain Python: from a run of messages to the bodies per channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.json import Decoder, Encoder
from msgspec.structs import astuple

from penstock.bench.peers.fields import ORDER
from penstock.bench.peers.protocol import Job
from penstock.bench.peers.python_messages import (
    BARE_ORDER,
    COPIED,
    ENTRIES,
    SINGLES,
    SIX,
    TRANSLATED,
    Addressed,
    Customer,
    CustomerRow,
    DeliveredOrder,
    EnrichedOrder,
    Identified,
    Kept,
    Multi,
    NestedOrder,
    Order,
    Orders,
    Priced,
    Rated,
    TwoFormats,
)

Delivery = Mapping[str, Sequence[bytes]]
Step = Callable[[Sequence[bytes]], Delivery]
Customers = Mapping[int, CustomerRow]
PRICE = ORDER.index("OTOTALPRICE")
FAILURES = {"A": 1, "B": 2, "C": 4, "D": 8, "E": 16, "F": 32}

encode = Encoder().encode
_identified = Decoder(Identified).decode
_order = Decoder(Order).decode


def multicast(channels: Sequence[str]) -> Step:
    def step(lines: Sequence[bytes]) -> Delivery:
        outputs: list[list[bytes]] = [[] for _ in channels]
        for line in lines:
            _identified(line)
            for output in outputs:
                output.append(line)
        return dict(zip(channels, outputs, strict=True))

    return step


def _cheap() -> Callable[[bytes], bool]:
    decode = Decoder(Priced).decode
    return lambda line: decode(line).OTOTALPRICE < 100_000


def _chosen() -> Callable[[bytes], bool]:
    decode = Decoder(Rated).decode

    def test(line: bytes) -> bool:
        order = decode(line)
        return (
            order.OTOTALPRICE < 100_000 and order.OORDERPRIORITY == "3-MEDIUM" and order.OORDERDATE < "1995-01-01"
        ) or order.OORDERSTATUS == "P"

    return test


def _european() -> Callable[[bytes], bool]:
    decode = Decoder(Multi).decode

    def test(line: bytes) -> bool:
        message = decode(line)
        customer = message.customer
        if customer.CACCTBAL <= 0:
            return False
        return any(nation.NREGIONKEY == 3 for nation in message.nations if nation.NNATIONKEY == customer.CNATIONKEY)

    return test


def either(test: Callable[[bytes], bool], yes: str, no: str) -> Step:
    def step(lines: Sequence[bytes]) -> Delivery:
        matching: list[bytes] = []
        others: list[bytes] = []
        for line in lines:
            (matching if test(line) else others).append(line)
        return {yes: matching, no: others}

    return step


def only(test: Callable[[bytes], bool]) -> Step:
    return lambda lines: {"out": [line for line in lines if test(line)]}


def first_of_five(lines: Sequence[bytes]) -> Delivery:
    decode = Decoder(Rated).decode
    outputs: dict[str, list[bytes]] = {"cheap": [], "medium": [], "old": [], "pending": [], "rest": []}
    for line in lines:
        order = decode(line)
        if order.OTOTALPRICE < 100_000:
            channel = "cheap"
        elif order.OORDERPRIORITY == "3-MEDIUM":
            channel = "medium"
        elif order.OORDERDATE < "1995-01-01":
            channel = "old"
        elif order.OORDERSTATUS == "P":
            channel = "pending"
        else:
            channel = "rest"
        outputs[channel].append(line)
    return outputs


def recipients(lines: Sequence[bytes], both: bool) -> Delivery:
    decode = Decoder(Addressed).decode
    outputs: dict[str, list[bytes]] = {}
    for line in lines:
        order = decode(line)
        outputs.setdefault(f"priority-{order.OORDERPRIORITY[0]}", []).append(line)
        if both:
            outputs.setdefault(f"status-{order.OORDERSTATUS}", []).append(line)
    return outputs


def split_collection(lines: Sequence[bytes]) -> Delivery:
    decode = Decoder(Orders).decode
    return {"out": [bytes(order) for line in lines for order in decode(line).orders]}


def split_fields(lines: Sequence[bytes]) -> Delivery:
    out = []
    for line in lines:
        out += [encode(single(value)) for single, value in zip(SINGLES, astuple(_order(line)), strict=True)]
    return {"out": out}


def split_entries(lines: Sequence[bytes]) -> Delivery:
    out = []
    for line in lines:
        one, two, three, four, *middle, last = astuple(_order(line))
        out += [encode(entry(one, two, three, four, value, last)) for entry, value in zip(ENTRIES, middle, strict=True)]
    return {"out": out}


def _each(change: Callable[[bytes], Any]) -> Step:
    return lambda lines: {"out": [encode(change(line)) for line in lines]}


def translate() -> Step:
    decode = Decoder(SIX).decode
    return _each(lambda line: TRANSLATED(*astuple(decode(line))))


def keep_three() -> Step:
    return _each(Decoder(Kept).decode)


def copy_fields(lines: Sequence[bytes]) -> Delivery:
    out = []
    for line in lines:
        values = astuple(_order(line))
        copies = [f"{value}-copy" for value in values]
        copies[PRICE] = f"{values[PRICE]:.2f}-copy"
        out.append(encode(COPIED(*values, *copies)))
    return {"out": out}


def enrich(customers: Customers) -> Step:
    decode = Decoder(EnrichedOrder).decode

    def change(line: bytes) -> EnrichedOrder:
        order = decode(line)
        customer = customers[order.OCUSTKEY]
        order.CNAME = customer.CNAME
        order.CMKTSEGMENT = customer.CMKTSEGMENT
        return order

    return _each(change)


def _customer(row: CustomerRow) -> Customer:
    return Customer(row.CNAME, row.CMKTSEGMENT, row.CNATIONKEY)


def enrich_nested(customers: Customers) -> Step:
    decode = Decoder(NestedOrder).decode

    def change(line: bytes) -> NestedOrder:
        order = decode(line)
        order.customer = _customer(customers[order.OCUSTKEY])
        return order

    return _each(change)


def enrich_two_formats(customers: Customers) -> Step:
    def change(line: bytes) -> TwoFormats:
        number, _, *values = astuple(_order(line))
        return TwoFormats(number, "MULTI", BARE_ORDER(*values), _customer(customers[values[1]]))

    return _each(change)


class Unavailable(Exception):
    """The step of the redelivery workloads could not do its work this time."""


def redeliver(failures: int) -> Step:
    decode = Decoder(DeliveredOrder).decode

    def attempt(order: DeliveredOrder, number: int) -> bytes:
        if number < failures:
            raise Unavailable
        return encode(order)

    def deliver(line: bytes) -> bytes:
        order = decode(line)
        number = 0
        while True:
            try:
                return attempt(order, number)
            except Unavailable:
                number += 1

    return lambda lines: {"out": [deliver(line) for line in lines]}


def balance(routes: int) -> Step:
    def step(lines: Sequence[bytes]) -> Delivery:
        for line in lines:
            _identified(line)
        return {f"route-{number + 1}": lines[number::routes] for number in range(routes)}

    return step


def join(routes: int) -> Step:
    def step(lines: Sequence[bytes]) -> Delivery:
        inputs: list[list[bytes]] = [[] for _ in range(routes)]
        for line in lines:
            inputs[_identified(line).msgId % routes].append(line)
        return {"out": [line for route in inputs for line in route]}

    return step


def step_of(name: str, job: Job, customers: Callable[[], Customers]) -> Step | None:
    """The step of a workload, if it has one that remembers nothing."""
    if name in _STEPS:
        return _STEPS[name]()
    if name in _ENRICH:
        return _ENRICH[name](customers())
    if name.startswith("MDS-1-"):
        return redeliver(FAILURES[name[-1]])
    if name.startswith("LB-"):
        return balance(job.size)
    if name.startswith("JR-"):
        return join(job.size)
    return None


_STEPS: dict[str, Callable[[], Step]] = {
    "BL": lambda: multicast(["out"]),
    "RT-1-A": lambda: either(_cheap(), "cheap", "rest"),
    "RT-1-B": lambda: first_of_five,
    "RT-1-C": lambda: either(_chosen(), "chosen", "rest"),
    "RT-1-A-filter": lambda: only(_cheap()),
    "RT-2-D": lambda: either(_european(), "europe", "rest"),
    "RT-2-D-filter": lambda: only(_european()),
    "RT-3-A": lambda: multicast(["out-1"]),
    "RT-3-B": lambda: multicast(["out-1", "out-2", "out-3", "out-4"]),
    "RT-4-A": lambda: partial(recipients, both=False),
    "RT-4-B": lambda: partial(recipients, both=True),
    "RT-5-A": lambda: split_collection,
    "RT-5-B": lambda: split_fields,
    "RT-5-C": lambda: split_entries,
    "MT-1-A": translate,
    "MT-2-A": keep_three,
    "CE-A": lambda: copy_fields,
}
_ENRICH: dict[str, Callable[[Customers], Step]] = {
    "MT-3-A": enrich, "MT-3-B": enrich_nested, "MT-3-C": enrich_two_formats,
}  # fmt: skip

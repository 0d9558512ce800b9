"""What the workloads of EIPBench deliver, in plain Python: nothing of Penstock is used here.

Every answer is a function from the messages to the messages of each channel, slow and obvious.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.bench.cars_answers import insured

Message = dict[str, Any]
Channels = dict[str, list[Message]]
Answer = Callable[[list[Message]], Channels]

HEAD = ("msgId", "type", "OORDERKEY", "OCUSTKEY")
TAIL = "OCOMMENT"
TRANSLATION = {
    "order": "OORDERKEY", "customer": "OCUSTKEY", "price": "OTOTALPRICE",
    "priority": "OORDERPRIORITY", "date": "OORDERDATE", "status": "OORDERSTATUS",
}  # fmt: skip
EUROPE = 3


def expected(workload: str, messages: list[Message], tables: Mapping[str, Iterable[Message]] | None = None) -> Channels:
    """The messages of every channel; MT-3 needs the table of customers, connected cars that of owners."""
    for needing, name in ((_ENRICHED, "customers"), (CARS, "owners")):
        if workload in needing and not (tables or {}).get(name):
            raise ValueError(f"the answer to {workload} needs the {name}")
    if workload in _ENRICHED:
        by_key = {customer["CCUSTKEY"]: customer for customer in (tables or {})["customers"]}
        return {"out": [_ENRICHED[workload](order, by_key[order["OCUSTKEY"]]) for order in messages]}
    if workload in CARS:
        return {"out": insured(messages, (tables or {})["owners"])}
    if workload not in _ANSWERS:
        raise ValueError(f"no answer is known to workload {workload!r}")
    return _ANSWERS[workload](messages)


def _unchanged(messages: list[Message]) -> Channels:
    return {"out": messages}


def _each(change: Callable[[Message], Message]) -> Answer:
    return lambda messages: {"out": [change(message) for message in messages]}


def _routed(cases: Mapping[str, Callable[[Message], bool]], otherwise: str | None) -> Answer:
    """The first case that is true; without `otherwise` the others are filtered."""

    def answer(messages: list[Message]) -> Channels:
        channels: Channels = {channel: [] for channel in (*cases, otherwise) if channel is not None}
        for message in messages:
            channel = next((name for name, test in cases.items() if test(message)), otherwise)
            if channel is not None:
                channels[channel].append(message)
        return channels

    return answer


def _is_cheap(order: Message) -> bool:
    return bool(order["OTOTALPRICE"] < 100_000)


def _is_medium(order: Message) -> bool:
    return bool(order["OORDERPRIORITY"] == "3-MEDIUM")


def _is_old(order: Message) -> bool:
    return bool(order["OORDERDATE"] < "1995-01-01")


def _is_pending(order: Message) -> bool:
    return bool(order["OORDERSTATUS"] == "P")


def _is_chosen(order: Message) -> bool:
    return (_is_cheap(order) and _is_medium(order) and _is_old(order)) or _is_pending(order)


def _is_european_with_money(message: Message) -> bool:
    customer = message["customer"]
    nations = [nation for nation in message["nations"] if nation["NNATIONKEY"] == customer["CNATIONKEY"]]
    return any(nation["NREGIONKEY"] == EUROPE for nation in nations) and customer["CACCTBAL"] > 0


def _copied(count: int) -> Answer:
    return lambda messages: {f"out-{number}": messages for number in range(1, count + 1)}


def _sent(*recipients: Callable[[Message], str]) -> Answer:
    def answer(messages: list[Message]) -> Channels:
        channels: Channels = defaultdict(list)
        for message in messages:
            for recipient in recipients:
                channels[recipient(message)].append(message)
        return dict(channels)

    return answer


def _of_priority(order: Message) -> str:
    return f"priority-{order['OORDERPRIORITY'][0]}"


def _of_status(order: Message) -> str:
    return f"status-{order['OORDERSTATUS']}"


def _split(parts: Callable[[Message], Iterable[Message]]) -> Answer:
    return lambda messages: {"out": [part for message in messages for part in parts(message)]}


def _members(collection: Message) -> list[Message]:
    orders: list[Message] = collection["orders"]
    return orders


def _fields(order: Message) -> list[Message]:
    return [{name: value} for name, value in order.items()]


def _entries(order: Message) -> list[Message]:
    head, tail = {name: order[name] for name in HEAD}, {TAIL: order[TAIL]}
    return [{**head, name: value, **tail} for name, value in order.items() if name not in head | tail]


def _gathered(size: int) -> Answer:
    def answer(messages: list[Message]) -> Channels:
        groups: dict[int, list[Message]] = defaultdict(list)
        for message in sorted(messages, key=lambda message: message["msgId"]):
            groups[message["msgId"] // size].append(message)
        return {"out": [{"orders": group} for group in groups.values()]}

    return answer


def _united(key: str) -> Answer:
    def answer(messages: list[Message]) -> Channels:
        whole: dict[Any, Message] = defaultdict(dict)
        for part in messages:
            whole[part[key]].update(part)
        return {"out": list(whole.values())}

    return answer


def _translated(order: Message) -> Message:
    return {target: order[name] for target, name in TRANSLATION.items()}


def _shortened(order: Message) -> Message:
    return {name: order[name] for name in ("OORDERKEY", "OCUSTKEY", "OTOTALPRICE")}


def _with_copies(order: Message) -> Message:
    texts = order | {"OTOTALPRICE": f"{order['OTOTALPRICE']:.2f}"}
    return order | {f"{name}_copy": f"{text}-copy" for name, text in texts.items()}


def _delivered(order: Message) -> Message:
    return order | {"delivered": True}


def _in_sequence(messages: list[Message]) -> Channels:
    return {"out": sorted(messages, key=lambda message: (message["group"], message["position"]))}


def _first_ones(messages: list[Message]) -> Channels:
    first: dict[int, Message] = {}
    for message in messages:
        first.setdefault(message["msgId"], message)
    return {"out": list(first.values())}


def _balanced(count: int) -> Answer:
    return lambda messages: {f"route-{number + 1}": messages[number::count] for number in range(count)}


def _short_customer(customer: Message) -> Message:
    return {name: customer[name] for name in ("CNAME", "CMKTSEGMENT", "CNATIONKEY")}


def _with_two_fields(order: Message, customer: Message) -> Message:
    return order | {name: customer[name] for name in ("CNAME", "CMKTSEGMENT")}


def _with_customer(order: Message, customer: Message) -> Message:
    return order | {"customer": _short_customer(customer)}


def _with_formats(order: Message, customer: Message) -> Message:
    fields = {name: value for name, value in order.items() if name not in ("msgId", "type")}
    return {"msgId": order["msgId"], "type": "MULTI", "order": fields, "customer": _short_customer(customer)}


_ENRICHED = {"MT-3-A": _with_two_fields, "MT-3-B": _with_customer, "MT-3-C": _with_formats}
_BRANCHES = {"cheap": _is_cheap, "medium": _is_medium, "old": _is_old, "pending": _is_pending}
_ANSWERS: dict[str, Answer] = {
    "BL": _unchanged,
    "RT-1-A": _routed({"cheap": _is_cheap}, "rest"),
    "RT-1-B": _routed(_BRANCHES, "rest"),
    "RT-1-C": _routed({"chosen": _is_chosen}, "rest"),
    "RT-1-A-filter": _routed({"out": _is_cheap}, None),
    "RT-2-D": _routed({"europe": _is_european_with_money}, "rest"),
    "RT-2-D-filter": _routed({"out": _is_european_with_money}, None),
    "RT-3-A": _copied(1),
    "RT-3-B": _copied(4),
    "RT-4-A": _sent(_of_priority),
    "RT-4-B": _sent(_of_priority, _of_status),
    "RT-5-A": _split(_members),
    "RT-5-B": _split(_fields),
    "RT-5-C": _split(_entries),
    "RT-6-A": _gathered(10),
    "RT-6-B": _gathered(100),
    "MT-1-A": _each(_translated),
    "MT-2-A": _each(_shortened),
    **{f"MDS-1-{letter}": _each(_delivered) for letter in "ABCDEF"},
    **{f"MDS-2-{size}": _in_sequence for size in (10, 100, 1_000, 10_000, 100_000)},
    "MDS-3-A": _unchanged,
    "MDS-3-B": _first_ones,
    **{f"LB-{count}": _balanced(count) for count in (2, 3, 4)},
    **{f"JR-{count}": _unchanged for count in (2, 3, 4)},
    "SP-A": _split(_fields),
    "SP-B": _split(_entries),
    "AGG-A": _united("order"),
    "AGG-B": _united("msgId"),
    "MT-A": _each(_translated),
    "CE-A": _each(_with_copies),
    "SpAgg-A": _unchanged,
    "SpAgg-B": _unchanged,
    "LBSpAggJR-3": _unchanged,
    "LBSpAggJR-4": _unchanged,
}
CARS = tuple(
    f"cars-{name}"
    for name in ("normal", "sub-parallel", "neighbor-merge", "early-out", "early-project", "combined")
)
WORKLOADS = (*_ANSWERS, *_ENRICHED, *CARS)
"""Every workload that has an answer."""

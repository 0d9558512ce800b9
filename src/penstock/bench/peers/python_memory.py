"""The steps that remember, in plain Python. Each worker has its own; what is left over is put together at the end."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.json import Decoder

from penstock.bench.peers.fields import HEAD, MIDDLE
from penstock.bench.peers.protocol import Job
from penstock.bench.peers.python_messages import Identified, Orders, Positioned
from penstock.bench.peers.python_steps import Delivery, Step, encode

Part = Any
Split = Callable[[bytes], Iterable[tuple[int, Part]]]
_identified = Decoder(Identified).decode
_fields = Decoder(dict[str, Any]).decode


class Remembering(Protocol):
    """A step whose answer may depend on messages that came before."""

    def take(self, lines: Sequence[bytes]) -> Delivery: ...

    def held(self) -> Any:
        """What was not delivered yet, to be sent to the process that finishes."""

    def finish(self, held: Sequence[Any], lines: Sequence[bytes]) -> Delivery:
        """Deliver what the workers held; `held` is in the order of their messages, `lines` are all messages."""


class Forgetting:
    """A step that remembers nothing, as one that does."""

    def __init__(self, step: Step) -> None:
        self.take = step

    def held(self) -> None:
        return None

    def finish(self, held: Sequence[None], lines: Sequence[bytes]) -> Delivery:
        return {}


class Groups:
    """Messages by key; a group is complete at a size."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.open: dict[int, list[Part]] = {}

    def add(self, key: int, part: Part) -> list[Part] | None:
        """The group of the key, if this part completes it."""
        group = self.open.get(key)
        if group is None:
            self.open[key] = [part]
            return None
        group.append(part)
        return self.open.pop(key) if len(group) == self.size else None


class Collect:
    """An aggregator or resequencer: read a message to key and part, collect the parts, combine those of a key."""

    def __init__(
        self,
        read: Callable[[bytes], tuple[int, Part]],
        size: int,
        combine: Callable[[list[Part]], Iterable[bytes]],
        only_complete: bool = False,
    ) -> None:
        self.read, self.combine, self.only_complete = read, combine, only_complete
        self.groups = Groups(size)

    def take(self, lines: Sequence[bytes]) -> Delivery:
        read, add, combine = self.read, self.groups.add, self.combine
        out: list[bytes] = []
        for line in lines:
            key, part = read(line)
            complete = add(key, part)
            if complete is not None:
                out += combine(complete)
        return {"out": out}

    def held(self) -> dict[int, list[Part]]:
        return self.groups.open

    def finish(self, held: Sequence[dict[int, list[Part]]], lines: Sequence[bytes]) -> Delivery:
        together: dict[int, list[Part]] = {}
        for groups in held:
            for key, parts in groups.items():
                together.setdefault(key, []).extend(parts)
        complete = (parts for parts in together.values() if not self.only_complete or len(parts) == self.groups.size)
        return {"out": [body for parts in complete for body in self.combine(parts)]}


class ReceiveOnce:
    """The idempotent receiver: all workers decode, one receives, because each key is the business of all."""

    def __init__(self) -> None:
        self.keys = array("q")

    def take(self, lines: Sequence[bytes]) -> Delivery:
        self.keys.extend([_identified(line).msgId for line in lines])
        return {}

    def held(self) -> array[int]:
        return self.keys

    def finish(self, held: Sequence[array[int]], lines: Sequence[bytes]) -> Delivery:
        seen: set[int] = set()
        out: list[bytes] = []
        keys = (key for part in held for key in part)
        for key, line in zip(keys, lines, strict=True):
            if key not in seen:
                seen.add(key)
                out.append(line)
        return {"out": out}


def aggregate_orders(size: int) -> Collect:
    def read(line: bytes) -> tuple[int, Part]:
        number = _identified(line).msgId
        return number // size, (number, line)

    def combine(parts: list[Part]) -> list[bytes]:
        parts.sort()
        return [encode(Orders([msgspec.Raw(line) for _, line in parts]))]

    return Collect(read, size, combine)


def resequence(size: int) -> Collect:
    decode = Decoder(Positioned).decode

    def read(line: bytes) -> tuple[int, Part]:
        message = decode(line)
        return message.group, (message.position, line)

    def combine(parts: list[Part]) -> list[bytes]:
        parts.sort()
        return [line for _, line in parts]

    return Collect(read, size, combine, only_complete=True)


def _union(parts: Iterable[dict[str, Any]]) -> list[bytes]:
    fields: dict[str, Any] = {}
    for part in parts:
        fields.update(part)
    return [encode(fields)]


def aggregate_fields(key: str, size: int) -> Collect:
    def read(line: bytes) -> tuple[int, Part]:
        fields = _fields(line)
        return fields[key], fields

    return Collect(read, size, _union)


def fields_of(line: bytes) -> Iterable[tuple[int, dict[str, Any]]]:
    """The parts of an order as SP-A makes them, each with the key of its order."""
    order = _fields(line)
    return [(order["msgId"], {name: value}) for name, value in order.items()]


def entries_of(line: bytes) -> Iterable[tuple[int, dict[str, Any]]]:
    """The parts of an order as SP-B makes them, each with the key of its order."""
    order = _fields(line)
    head = {name: order[name] for name in HEAD}
    last = order["OCOMMENT"]
    return [(order["msgId"], {**head, name: order[name], "OCOMMENT": last}) for name in MIDDLE]


def split_and_aggregate(split: Split, size: int, routes: int) -> Step:
    """A splitter and its aggregator on each of the routes between a load balancer and a join router.

    The parts stay objects: only what is delivered becomes bytes again.
    """

    def step(lines: Sequence[bytes]) -> Delivery:
        aggregators = [Groups(size) for _ in range(routes)]
        out: list[bytes] = []
        for number, line in enumerate(lines):
            add = aggregators[number % routes].add
            for key, part in split(line):
                complete = add(key, part)
                if complete is not None:
                    out += _union(complete)
        return {"out": out}

    return step


def remembering_step_of(name: str, job: Job) -> Callable[[], Remembering] | None:
    """What makes the step of a workload for each worker, if it has one that remembers."""
    if name.startswith("MDS-2-"):
        return lambda: resequence(job.size)
    return _REMEMBERING.get(name)


def combined_step_of(name: str) -> Step | None:
    """The step of the workloads that split and aggregate: nothing of one message is left when the next one comes."""
    if name not in _SPLIT_AND_AGGREGATE:
        return None
    split, size, routes = _SPLIT_AND_AGGREGATE[name]
    return split_and_aggregate(split, size, routes)


_SPLIT_AND_AGGREGATE: dict[str, tuple[Split, int, int]] = {
    "SpAgg-A": (fields_of, 11, 1),
    "SpAgg-B": (entries_of, 6, 1),
    "LBSpAggJR-3": (entries_of, 6, 3),
    "LBSpAggJR-4": (entries_of, 6, 4),
}
_REMEMBERING: dict[str, Callable[[], Remembering]] = {
    "RT-6-A": lambda: aggregate_orders(10),
    "RT-6-B": lambda: aggregate_orders(100),
    "MDS-3-A": ReceiveOnce,
    "MDS-3-B": ReceiveOnce,
    "AGG-A": lambda: aggregate_fields("order", 11),
    "AGG-B": lambda: aggregate_fields("msgId", 6),
}

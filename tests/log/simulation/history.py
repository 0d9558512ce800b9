"""What was pushed and promised, and whether the log keeps to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge, Settings
from tests.log.simulation.clock import Clock
from tests.log.simulation.memory import Memory

Messages = list[tuple[int, bytes]]


@dataclass
class History:
    """Of one partition. All values are different, so a value says which message it is."""

    settings: Settings
    clock: Clock
    memory: Memory
    pushed: dict[bytes, int] = field(default_factory=dict)
    """When they were made: how many times the wall clock had shown until then."""
    promised: dict[int, tuple[bytes, Acknowledge]] = field(default_factory=dict)
    acknowledged: int = 0
    repeated: int = 0
    forgotten: int = 0

    def push(self, values: Iterable[bytes]) -> None:
        self.pushed.update(dict.fromkeys(values, len(self.clock.walls)))

    def promise(self, values: list[bytes], receipt: Receipt) -> None:
        assert receipt.first >= 0, f"a receipt that does not say where messages are: {receipt}"
        assert receipt.count == len(values), f"{receipt} for {len(values)} messages"
        self.acknowledged += len(values)
        self.repeated += receipt.duplicate
        for offset, value in enumerate(values, receipt.first):
            other, mode = self.promised.get(offset, (value, receipt.acknowledged))
            assert other == value, f"offset {offset} was promised to {other!r} and to {value!r}"
            self.promised[offset] = value, max(mode, receipt.acknowledged)

    def check(self, found: Messages, first: int, end: int) -> None:
        """Of a log that lives: all that can be read is what was promised, in its place."""
        self._compare(found, first, end)

    def survived(self, found: Messages, first: int, end: int, least: Acknowledge) -> None:
        """After a crash that may take what is less safe than `least`, but only from the end."""
        lost = {offset: kept for offset, kept in self.promised.items() if offset >= end and kept[1] >= least}
        assert not lost, f"acknowledged and lost: {sorted(lost.items())[:3]} of {len(lost)}; the log ends at {end}"
        self.promised = {offset: kept for offset, kept in self.promised.items() if first <= offset < end}
        self._compare(found, first, end)

    def _compare(self, found: Messages, first: int, end: int) -> None:
        assert [offset for offset, _ in found] == list(range(first, end)), "offsets have gaps or doubles"
        self._check_removed(first)
        there = dict(found)
        for offset, (value, _) in self.promised.items():
            if first <= offset < end:
                assert there[offset] == value, f"offset {offset} was promised to {value!r}, and has {there[offset]!r}"
        invented = set(there.values()) - self.pushed.keys()
        assert not invented, f"nobody pushed {sorted(invented)[:3]}"
        if len(set(there.values())) != len(there):
            self._check_twice(found)

    def _check_removed(self, first: int) -> None:
        """Nothing goes that retention keeps, whatever the wall clock has shown since."""
        retention = self.settings.retention
        removed = {offset: value for offset, (value, _) in self.promised.items() if offset < first}
        for offset, value in removed.items():
            del self.promised[offset]
            span = self.clock.span(self.pushed[value])
            is_old = retention.age is not None and span > retention.age
            assert is_old or retention.bytes is not None, f"offset {offset} is gone, and {span:.3f} s old at most"

    def _check_twice(self, found: Messages) -> None:
        """Only a producer that the log had to forget can have stored something again."""
        twice = _twice(found)
        for value, offsets in twice:
            for before, offset in pairwise(offsets):
                assert self.memory.may_repeat(before, offset), f"stored twice: {value!r} at {before} and {offset}"
        self.forgotten = max(self.forgotten, len(twice))

    def check_order(self, found: Messages, client: str) -> list[int]:
        """The numbers of a client's messages, which are in order when each comes for the first time."""
        own = (int(value.split()[1]) for _, value in found if value.split()[0].decode() == client)
        numbers = list(dict.fromkeys(own))
        assert numbers == sorted(numbers), f"the messages of {client} are out of order"
        return numbers


def _twice(found: Messages) -> list[tuple[bytes, list[int]]]:
    places: dict[bytes, list[int]] = {}
    for offset, value in found:
        places.setdefault(value, []).append(offset)
    return [(value, offsets) for value, offsets in places.items() if len(offsets) > 1]

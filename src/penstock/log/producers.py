"""Numbered producers: a message that is pushed again, because its answer was lost, is stored only once.

What is known of a producer is the history of what it wrote. To take messages back is to cut this history, which leaves
exactly what was known before them. Only the history of durable messages, which are never taken back, is shortened.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from penstock.log.errors import ForgottenPush, StaleProducer, WrongSequence
from penstock.log.frame import NOBODY, Run

REMEMBERED = 8
"""How many stretches of a producer's durable messages are known with their offsets."""
LARGEST_SEQUENCE = 1 << 62
"""No message has this number, or a higher one."""
_LONGEST = 1 << 31
_EVERYTHING = 1 << 63
_NOTHING = (0, 0, 0, 0)
_ROW = np.dtype([("producer", "<i8"), ("sequence", "<i8"), ("offset", "<i8"), ("epoch", "<i4"), ("count", "<u4")])


Stretch = tuple[int, int, int, int]
"""Epoch, first number, count and first offset of messages whose numbers and offsets both follow each other."""


class Evicted(NamedTuple):
    """A producer that was forgotten when another one wrote at this offset."""

    offset: int
    producer: int
    stretches: list[Stretch]


class Producers:
    """What every producer has written into one partition; the `most` producers that wrote last are remembered."""

    def __init__(self, most: int, epoch_of: Callable[[int], int] = lambda producer: 0) -> None:
        self.durable = _EVERYTHING
        """What is before this offset is never taken back: nothing of what is found when a log is opened."""
        self._most = most
        self._epoch_of = epoch_of
        # The last to write is the last here. An entry is moved, never taken out and put in again: `pack` is called by
        # another thread than the one that adds.
        self._known: OrderedDict[int, list[Stretch]] = OrderedDict()
        self._evicted: deque[Evicted] = deque()

    def duplicate(self, run: Run) -> int | None:
        """The offset where these messages are already, or None if they are new and in order."""
        producer, first, epoch, count = run
        stretches = self._known.get(producer)
        latest, sequence, messages, _ = stretches[-1] if stretches is not None else _NOTHING
        newest = self._epoch_of(producer)
        if epoch < latest or epoch < newest:
            raise StaleProducer(f"producer {producer} has epoch {epoch}, but {max(latest, newest)} is the newest", None,
                                "another process writes under its name: stop one of them")  # fmt: skip
        if first + count > LARGEST_SEQUENCE:
            raise _wrong(run, "that is more than there are numbers", f"numbers end before {LARGEST_SEQUENCE}")
        if stretches is None or latest < epoch:
            if first != 0:
                who = "a producer that is not known here" if stretches is None else "a new epoch"
                raise _wrong(run, "0 was expected", f"{who} begins with 0")
            return None
        if first == sequence + messages:
            return None
        return _place(run, stretches, sequence + messages)

    def last(self, producer: int) -> tuple[int, int] | None:
        """The epoch of a producer and its next number, if it is known here."""
        known = self._known.get(producer)
        if known is None:
            return None
        epoch, sequence, messages, _ = known[-1]
        return epoch, sequence + messages

    def add(self, runs: Sequence[Run], offset: int) -> None:
        """Runs that have been written from `offset` on."""
        for run in runs:
            if run.producer != NOBODY:
                self._add(run, offset)
            offset += run.messages

    def _add(self, run: Run, offset: int) -> None:
        producer, first, epoch, count = run
        stretches = self._known.get(producer)
        if stretches is None:
            self._known[producer] = [(epoch, first, count, offset)]
            if len(self._known) > self._most:
                self._evict(offset)
            return
        self._known.move_to_end(producer)
        before, sequence, messages, place = stretches[-1]
        follows = place + messages == offset and sequence + messages == first and before == epoch
        if follows and messages + count < _LONGEST:
            stretches[-1] = (epoch, sequence, messages + count, place)
            return
        stretches.append((epoch, first, count, offset))
        if len(stretches) > REMEMBERED:
            self._trim(stretches)

    def _trim(self, stretches: list[Stretch]) -> None:
        surplus = 0
        while len(stretches) - surplus > REMEMBERED and _end(stretches[surplus + REMEMBERED]) <= self.durable:
            surplus += 1
        if surplus:
            del stretches[:surplus]

    def _evict(self, offset: int) -> None:
        while self._evicted and self._evicted[0].offset < self.durable:
            self._evicted.popleft()
        producer, stretches = self._known.popitem(last=False)
        if offset >= self.durable:
            self._evicted.append(Evicted(offset, producer, stretches))

    def undo(self, offset: int) -> None:
        """Forget what was written from `offset` on, because it was taken back."""
        while self._evicted and self._evicted[-1].offset >= offset:
            evicted = self._evicted.pop()
            self._known[evicted.producer] = evicted.stretches
        self._known = OrderedDict(_known_before(self._known.items(), offset))

    def pack(self, before: int) -> bytes:
        """What was written before an offset, as bytes; later messages may be gone when this is loaded."""
        known = dict(list(self._known.items()))  # first: who is forgotten meanwhile is in both, and not in neither
        evicted = [(one.producer, one.stretches) for one in tuple(self._evicted)
                   if one.offset >= before and known.get(one.producer) is not one.stretches]  # fmt: skip
        rows = [(producer, sequence, offset, epoch, messages)
                for producer, stretches in _known_before((*evicted, *known.items()), before)
                for epoch, sequence, messages, offset in stretches]  # fmt: skip
        return np.array(rows, _ROW).tobytes()

    def load(self, packed: bytes) -> None:
        """Know what was packed, and nothing else."""
        self._known.clear()
        for producer, sequence, offset, epoch, count in np.frombuffer(packed, _ROW).tolist():
            self._add(Run(producer, sequence, epoch, count), offset)


def _end(stretch: Stretch) -> int:
    return stretch[3] + stretch[2]


def _known_before(known: Iterable[tuple[int, list[Stretch]]], limit: int) -> list[tuple[int, list[Stretch]]]:
    """The producers that wrote before an offset, with what they wrote there, in the order of their last messages."""
    before = ((producer, _before(stretches, limit)) for producer, stretches in known)
    return sorted((one for one in before if one[1]), key=lambda one: one[1][-1][3])


def _before(stretches: list[Stretch], limit: int) -> list[Stretch]:
    """The parts of these stretches before an offset."""
    return [(epoch, sequence, min(messages, limit - offset), offset)
            for epoch, sequence, messages, offset in tuple(stretches) if offset < limit]  # fmt: skip


def _place(run: Run, stretches: list[Stretch], expected: int) -> int:
    """The offset of messages that were stored before; raises if it is not known."""
    end = run.sequence + run.messages
    if run.sequence > expected:
        raise _wrong(run, f"{expected} was expected", "messages before them are missing: push those first")
    if end > expected or run.sequence < 0:
        raise _wrong(run, f"{expected} was expected", "push the same batch again, with the same messages")
    for epoch, sequence, messages, offset in reversed(stretches):
        if epoch == run.epoch and sequence <= run.sequence and end <= sequence + messages:
            return offset + run.sequence - sequence
    raise ForgottenPush(f"messages {run.sequence} to {end - 1} of producer {run.producer} are stored, but it is"
                        " forgotten where", None, f"do not push them again: {expected} is the next number")  # fmt: skip


def _wrong(run: Run, why: str, fix: str) -> WrongSequence:
    return WrongSequence(f"producer {run.producer} sends {run.messages} messages from number {run.sequence},"
                         f" and {why}", None, fix)  # fmt: skip

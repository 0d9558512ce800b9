"""Numbered producers: a message that is pushed again, because its answer was lost, is there only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from penstock.log.errors import StaleProducer, WrongSequence
from penstock.log.frame import NOBODY, Run

REMEMBERED = 8
"""How many batches of a producer are known with their offsets: as many as it may have on the way."""
_ROW = np.dtype([("producer", "<i8"), ("sequence", "<i8"), ("offset", "<i8"), ("epoch", "<i4"), ("count", "<u4")])


class Batch(NamedTuple):
    sequence: int
    messages: int
    offset: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    next: int
    batches: list[Batch] = field(default_factory=list)


class Producers:
    """What every producer has written into one partition."""

    def __init__(self, most: int, epoch_of: Callable[[int], int] = lambda producer: 0) -> None:
        self._most = most
        self._epoch_of = epoch_of
        self._known: dict[int, _Producer] = {}

    def duplicate(self, run: Run) -> Batch | None:
        """The batch that this run repeats (its offset is -1 if forgotten), or None if it is new and in order."""
        known = self._known.get(run.producer)
        newest = max(self._epoch_of(run.producer), known.epoch if known else 0)
        if run.epoch < newest:
            raise StaleProducer(f"producer {run.producer} has epoch {run.epoch}, but {newest} is the newest", None,
                                "another process writes under its name: stop one of them")  # fmt: skip
        if known is None:
            return None
        if run.epoch > known.epoch:
            if run.sequence != 0:
                raise _wrong(run, 0, "a new epoch begins with 0")
            return None
        if run.sequence == known.next:
            return None
        if run.sequence > known.next:
            raise _wrong(run, known.next, "messages before them are missing: push those first")
        if run.sequence + run.messages > known.next:
            raise _wrong(run, known.next, "push the same batch again, with the same messages")
        for batch in known.batches:
            if batch.sequence <= run.sequence and run.sequence + run.messages <= batch.sequence + batch.messages:
                return Batch(run.sequence, run.messages, batch.offset + run.sequence - batch.sequence)
        return Batch(run.sequence, run.messages, -1)

    def last(self, producer: int) -> tuple[int, int] | None:
        """The epoch of a producer and its next number, if it is known here."""
        known = self._known.get(producer)
        return None if known is None else (known.epoch, known.next)

    def add(self, runs: Sequence[Run], offset: int) -> None:
        """Runs that have been written from `offset` on."""
        for run in runs:
            if run.producer != NOBODY:
                self._add(run, offset)
            offset += run.messages

    def _add(self, run: Run, offset: int) -> None:
        known = self._known.pop(run.producer, None)
        if known is None or run.epoch > known.epoch:
            known = _Producer(run.epoch, run.sequence)
        self._known[run.producer] = known  # the last to write is the last in the dictionary
        known.batches.append(Batch(run.sequence, run.messages, offset))
        del known.batches[:-REMEMBERED]
        known.next = run.sequence + run.messages
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def undo(self, offset: int) -> None:
        """Forget what was written from `offset` on: it is not there."""
        for number, known in list(self._known.items()):
            kept = [batch for batch in known.batches if batch.offset < offset]
            if len(kept) == len(known.batches):
                continue
            known.next = known.batches[len(kept)].sequence
            known.batches = kept
            if not kept and known.next == 0:
                del self._known[number]

    def pack(self, before: int) -> bytes:
        """What was written before an offset: what comes after it may not be there when this is loaded."""
        rows = [(number, batch.sequence, batch.offset, known.epoch, batch.messages)
                for number, known in list(self._known.items())
                for batch in known.batches if batch.offset < before]  # fmt: skip
        return np.array(rows, _ROW).tobytes()

    def load(self, packed: bytes) -> None:
        for producer, sequence, offset, epoch, count in np.frombuffer(packed, _ROW).tolist():
            self._add(Run(producer, sequence, epoch, count), offset)


def _wrong(run: Run, expected: int, fix: str) -> WrongSequence:
    return WrongSequence(f"producer {run.producer} sends {run.messages} messages from number {run.sequence},"
                         f" and {expected} was expected", None, fix)  # fmt: skip

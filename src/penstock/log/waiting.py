"""The pushes of a partition that wait for their acknowledgement, in the order of their offsets."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge


class Answer(Protocol):
    """Takes the answer of a push: a future, or something with the same two methods."""

    def set_result(self, receipt: Receipt, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


IsDone = Callable[[int, Acknowledge], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Waiter:
    """A push that waits until all messages up to `end` are as durable as `mode` says.

    Without a future it was answered already, but its messages cannot be read yet.
    """

    end: int
    mode: Acknowledge
    receipt: Receipt
    future: Answer | None = None
    since: float = field(default_factory=time.monotonic)


class Waiting:
    """The pushes of one partition that wait; for one thread at a time."""

    def __init__(self) -> None:
        self._queue: deque[Waiter] = deque()
        self._repeated: list[Waiter] = []
        """Pushes that came again, at any offset."""

    def __bool__(self) -> bool:
        return bool(self._queue)

    def __iter__(self) -> Iterator[Waiter]:
        yield from self._queue
        yield from self._repeated

    def add(self, waiter: Waiter) -> None:
        self._queue.append(waiter)

    def repeat(self, waiter: Waiter) -> None:
        self._repeated.append(waiter)

    def wants_sync(self) -> bool:
        return any(waiter.mode is Acknowledge.FSYNCED and waiter.future is not None for waiter in self)

    def served(self, is_done: IsDone) -> tuple[list[Waiter], int]:
        """The pushes that can be answered now, and the offset up to which messages can be read.

        Messages can be read when all before them are acknowledged, too.
        """
        done = [waiter for waiter in self if waiter.future is not None and is_done(waiter.end, waiter.mode)]
        readable = 0
        while self._queue and is_done(self._queue[0].end, self._queue[0].mode):
            readable = self._queue.popleft().end
        self._forget(done)
        return done, readable

    def overdue(self, before: float) -> list[Waiter]:
        """The pushes that have waited since before then; their messages keep their place, unanswered."""
        late = [waiter for waiter in self if waiter.future is not None and waiter.since < before]
        self._forget(late)
        return late

    def _forget(self, answered: list[Waiter]) -> None:
        """They wait no more, and keep their place in the order."""
        if answered:
            gone = set(map(id, answered))
            self._repeated = [waiter for waiter in self._repeated if id(waiter) not in gone]
            self._queue = deque(replace(one, future=None) if id(one) in gone else one for one in self._queue)

    def failed(self, kept: int, cut: int) -> list[Waiter]:
        """The pushes behind `kept`, which fail; messages up to `cut` stay, behind the pushes that still wait."""
        failed = [waiter for waiter in self if waiter.end > kept and waiter.future is not None]
        self._repeated = [waiter for waiter in self._repeated if waiter.end <= kept]
        self._queue = deque(waiter for waiter in self._queue if waiter.end <= kept)
        if self._queue:
            self._queue.append(Waiter(cut, Acknowledge.MEMORY, self._queue[-1].receipt))
        return failed

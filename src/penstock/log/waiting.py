"""Waiting: the pushes of a partition that are not acknowledged yet, in the order of their offsets."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge


class Answer(Protocol):
    """Whom a push is answered to: a future, or whoever needs no more than this of one."""

    def set_result(self, receipt: Receipt, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


IsDone = Callable[[int, Acknowledge], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Waiter:
    """All up to `end` must be as durable as `mode` says. Without a future it was answered, and is not yet readable."""

    end: int
    mode: Acknowledge
    receipt: Receipt
    future: Answer | None = None
    since: float = field(default_factory=time.monotonic)


class Waiting:
    """One thread at a time."""

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
        """Those that can be answered now, and up to where messages can be read: one waits for those before it."""
        done = [waiter for waiter in self if waiter.future is not None and is_done(waiter.end, waiter.mode)]
        readable = 0
        while self._queue and is_done(self._queue[0].end, self._queue[0].mode):
            readable = self._queue.popleft().end
        self._forget(done)
        return done, readable

    def overdue(self, before: float) -> list[Waiter]:
        """Those that have waited since before then. They will not be answered, and keep their place in the order."""
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
        """Those behind `kept`, which will not be served. Who still waits comes before what is left up to `cut`."""
        failed = [waiter for waiter in self if waiter.end > kept and waiter.future is not None]
        self._repeated = [waiter for waiter in self._repeated if waiter.end <= kept]
        self._queue = deque(waiter for waiter in self._queue if waiter.end <= kept)
        if self._queue:
            self._queue.append(Waiter(cut, Acknowledge.MEMORY, self._queue[-1].receipt))
        return failed

"""Answer the requests of one connection that are neither push nor pull, in threads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from penstock.log.wire import requests

if TYPE_CHECKING:
    from penstock.log.server.service import Service

_AT_ONCE = 2
Finish = Callable[[bytes | BaseException], None]


class Questions:
    """Requests that may touch the disk, answered by threads.

    Few at a time, so that other connections come in between, and none while the client does not take its answers.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.is_blocked = False
        self._waiting: deque[tuple[requests.Request, Finish]] = deque()
        self._asked = 0

    def ask(self, request: requests.Request, finish: Finish) -> None:
        """`finish` is called in the event loop, with the head of the answer."""
        self._waiting.append((request, finish))
        self.go_on()

    def go_on(self) -> None:
        while self._waiting and self._asked < _AT_ONCE and not self.is_blocked:
            self._asked += 1
            request, finish = self._waiting.popleft()
            answer = self.service.in_thread(partial(self._answer, request))
            answer.add_done_callback(partial(self._answered, finish))

    def _answer(self, request: requests.Request) -> bytes:
        return requests.written(self.service.answer(request))

    def _answered(self, finish: Finish, answer: asyncio.Future[bytes]) -> None:
        self._asked -= 1
        if not answer.cancelled():
            error = answer.exception()
            finish(answer.result() if error is None else error)
        self.go_on()

    def cancel(self) -> None:
        self._waiting.clear()

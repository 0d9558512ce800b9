"""Connections to servers and logs, each opened once and kept from the first batch of a run to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar


class Closing(Protocol):
    def close(self) -> None: ...


_T = TypeVar("_T", bound=Closing)
_lock = threading.RLock()
_open: dict[Hashable, Any] = {}
_holds = 0


@contextmanager
def keeping_connections() -> Iterator[None]:
    """Keep connections that are opened inside this block open until its end."""
    global _holds
    with _lock:
        _holds += 1
    try:
        yield
    finally:
        with _lock:
            _holds -= 1
            while _open and not _holds:
                _open.popitem()[1].close()


@contextmanager
def connection(place: Hashable, make: Callable[[], _T], drop: bool = True) -> Iterator[_T]:
    """The connection to a place, for one thread at a time; after an error it is closed if `drop` says so."""
    with keeping_connections(), _lock:
        if place not in _open:
            _open[place] = make()
        try:
            yield _open[place]
        except BaseException:
            if drop:
                _open.pop(place).close()
            raise

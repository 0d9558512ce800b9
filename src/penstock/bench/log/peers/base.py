"""What every system has to offer: a server in a process of its own, publishers, and a way to read everything back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

MEMORY, WRITTEN, FSYNCED = MODES = ("memory", "written", "fsynced")


class Publisher(Protocol):
    """One connection that publishes to one topic, in an event loop."""

    async def publish(self, value: bytes) -> None:
        """One message; returns when it is acknowledged."""

    async def publish_many(self, values: Sequence[bytes]) -> None:
        """Many, by the fastest way that this client has; returns when all are acknowledged."""

    async def close(self) -> None: ...


class Serving(Protocol):
    """A server that runs."""

    async def create(self, topic: str) -> None: ...

    async def publisher(self, topic: str, streams: bool = False) -> Publisher:
        """`streams` says that many messages will be on the way, so that waiting for others is worth it."""

    async def read(self, topic: str, count: int) -> list[bytes]:
        """The messages of a topic, which should be `count`: fewer, if no more come."""


@dataclass(frozen=True)
class Peer:
    """A system. `modes` says for each mode that it has which settings make it."""

    name: str
    title: str
    modes: Mapping[str, str]
    missing: Callable[[], str | None]
    """What this machine lacks for it, and what to do; None if nothing."""
    version: Callable[[], str]
    serve: Callable[[Path, str], AbstractContextManager[Serving]]
    """Run a server with its data in a directory, in a mode."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Why there is no such mode."""
    streams: bool = True
    """Whether one publisher can have many messages on the way."""

"""The interface of the last, durable level of a partition, which is files or Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.log.errors import NotAcknowledged
from penstock.log.frame import Frame


class Last(Protocol):
    """One thread writes and fsyncs at a time; any number read."""

    writes: int
    syncs: int
    name: str
    remedy: str
    """What to do when it cannot be written to."""
    unavailable: type[NotAcknowledged]
    """The error of a push that it does not answer in time."""
    unsynced: tuple[str, str] | None
    """Why it cannot promise `fsynced`, and what to do about that; None if it can."""
    timeout: float | None
    """Seconds after which a push that waits for it fails; None if writing is done when `write` returns."""
    stall: float
    """Seconds without progress after which nobody waits for room any more."""
    refused: NotAcknowledged | None
    """Why nothing can be written any more, for good."""
    suspect: bool
    """Whether an fsync failed."""

    @property
    def first(self) -> int: ...

    @property
    def end(self) -> int:
        """The offset after the last message that is written."""

    @property
    def durable(self) -> int: ...

    @property
    def taken(self) -> int:
        """The offset after the last message that cannot be taken back; some of these may be written only later."""

    @property
    def size(self) -> int: ...

    @property
    def pieces(self) -> int:
        """How many segments it has."""

    @property
    def trouble(self) -> str:
        """Why it may make no progress."""

    @property
    def stalled(self) -> float:
        """Seconds since it last wrote something, if something waits."""

    def write(self, frames: Sequence[Frame]) -> None: ...

    def sync(self) -> None: ...

    def read(self, offset: int, most_bytes: int, most_messages: int | None) -> list[Frame]: ...

    def offset_at(self, time: int) -> int: ...

    def retain(self) -> None: ...

    def undo_write(self) -> None: ...

    def restart(self, upto: int) -> None: ...

    def tell(self, call: Callable[[], None]) -> None:
        """Have `call` called, in any thread, when more has been written since `write` returned."""

    def close(self) -> None: ...

    def release(self) -> None: ...

"""One push of a TCP connection, until it is answered."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.log.frame import Frame
from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge

if TYPE_CHECKING:
    from penstock.log.server.service import Service
    from penstock.log.server.tcp import Connection


@dataclass(slots=True, eq=False)
class Push:
    """Messages that a connection has pushed, until they are answered, in any thread."""

    service: Service
    connection: Connection
    number: int
    size: int
    frame: Frame
    mode: Acknowledge
    place: tuple[str, int]
    identity: str = ""
    receipt: Receipt | None = None
    error: BaseException | None = None

    def set_result(self, receipt: Receipt) -> None:
        if not self.is_answered:
            self.receipt = receipt
            self.service.done(self)

    def set_exception(self, error: BaseException) -> None:
        if not self.is_answered:
            self.error = error
            self.service.done(self)

    def set_future(self, future: Future[Receipt]) -> None:
        error = future.exception()
        if error is None:
            self.set_result(future.result())
        else:
            self.set_exception(error)

    @property
    def is_answered(self) -> bool:
        """Whether it has its answer: it gets one only, also when a failure concerns several pushes."""
        return self.receipt is not None or self.error is not None

"""The end of a route: a channel that another route reads, or one bound to an endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.endpoints.base import Sink
from penstock.errors import BadEndpoint
from penstock.patterns.node import NO_USER, Node, check_channel


@dataclass(frozen=True, slots=True)
class To(Node):
    channel: str
    sink: Sink | None = None

    verb: ClassVar[str] = "to"
    pattern: ClassVar[str] = "message channel"
    template: ClassVar[str] = NO_USER
    ends: ClassVar[bool] = True

    def sends_to(self) -> tuple[str, ...]:
        return (self.channel,)

    def detail(self) -> str:
        return f"-> {self.channel}" + (f" ({self.sink})" if self.sink else "")


def to(channel: str, sink: Sink | None = None) -> To:
    if sink is not None and not isinstance(sink, Sink):
        raise BadEndpoint(f"{sink!r} is not a sink", fix="use Files, Parquet, Table, Console, Void or Memory")
    return To(check_channel(channel), sink)

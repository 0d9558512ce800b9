"""The end of a route: a channel that another route reads, or one bound to an endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.endpoints.base import Sink
from penstock.errors import BadEndpoint
from penstock.patterns.node import NO_USER, Node, check_channel
from penstock.patterns.verb import Verb

if TYPE_CHECKING:
    from penstock.yaml.item import Item


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

    @classmethod
    def read(cls, item: Item) -> Node:
        from penstock.endpoints.yaml import read_endpoint

        if not item.is_mapping:
            return to(item.text())
        found = item.keys(("channel", "sink"))
        sink = read_endpoint(found["sink"])
        if not isinstance(sink, Sink):
            raise BadEndpoint(f"{sink} cannot be written to", found["sink"].origin)
        return to(found["channel"].text(), sink)

    def write(self) -> object:
        from penstock.endpoints.yaml import write_endpoint

        return self.channel if self.sink is None else {"channel": self.channel, "sink": write_endpoint(self.sink)}


def to(channel: str, sink: Sink | None = None) -> To:
    if sink is not None and not isinstance(sink, Sink):
        raise BadEndpoint(f"{sink!r} is not a sink", fix="use Files, Parquet, Table, Console, Void or Memory")
    return To(check_channel(channel), sink)


class ToVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (To,)

    def to(self, channel: str, sink: Sink | None = None, name: str | None = None) -> Self:
        """Send to a channel, or to a sink under the channel's name. Ends the route."""
        return self.then(lambda: to(channel, sink), name)

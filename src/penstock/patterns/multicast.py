"""Multicast: every channel gets its own copy of the message, maybe only as long as no copy before it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.budget import ON_EXCEPTION, Budget, check_stop
from penstock.errors import BadRoute
from penstock.patterns.drawing import arrow, dot, line
from penstock.patterns.node import NO_USER, Node, check_channel
from penstock.patterns.verb import Verb

if TYPE_CHECKING:
    from penstock.yaml.item import Item


@dataclass(frozen=True, slots=True)
class Multicast(Node):
    targets: tuple[str, ...]
    stop_on_exception: bool = False

    verb: ClassVar[str] = "multicast"
    pattern: ClassVar[str] = "multicast"
    template: ClassVar[str] = NO_USER
    icon: ClassVar[str] = (
        line((8, 22), (24, 22)) + "".join(arrow((24, 22), (53, y)) for y in (9, 22, 35)) + dot(24, 22)
    )  # fmt: skip
    channels: ClassVar[str] = "1:n"
    messages: ClassVar[str] = "1:n"
    ends: ClassVar[bool] = True

    @property
    def stopping(self) -> Budget | None:
        return 0 if self.stop_on_exception else None

    def sends_to(self) -> tuple[str, ...]:
        return self.targets

    def detail(self) -> str:
        return f"-> {', '.join(self.targets)}" + (ON_EXCEPTION if self.stop_on_exception else "")

    @classmethod
    def read(cls, item: Item) -> Node:
        if not item.is_mapping:
            return multicast(*item.texts())
        found = item.keys(("to",), ("stop_on_exception",))
        return multicast(*found["to"].texts(), stop_on_exception=found.is_set("stop_on_exception"))

    def write(self) -> object:
        targets = list(self.targets)
        return {"to": targets, "stop_on_exception": True} if self.stop_on_exception else targets


def multicast(*targets: str, stop_on_exception: bool = False) -> Multicast:
    if not targets or len(set(targets)) != len(targets):
        raise BadRoute(f"multicast to {list(targets)!r}", fix="name each channel once, at least one")
    return Multicast(tuple(check_channel(target) for target in targets), check_stop(stop_on_exception))


class MulticastVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Multicast,)

    def multicast(self, *targets: str, stop_on_exception: bool = False, name: str | None = None) -> Self:
        """A copy to every channel; on request none to those after a copy that fails. Ends the route."""
        return self.then(lambda: multicast(*targets, stop_on_exception=stop_on_exception), name)

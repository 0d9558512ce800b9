"""Wire tap: a copy goes to another channel, the message goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.patterns.drawing import arrow, dot
from penstock.patterns.node import NO_USER, Node, check_channel
from penstock.patterns.verb import Verb

if TYPE_CHECKING:
    from penstock.yaml.item import Item


@dataclass(frozen=True, slots=True)
class Tap(Node):
    target: str

    verb: ClassVar[str] = "tap"
    pattern: ClassVar[str] = "wire tap"
    template: ClassVar[str] = NO_USER
    icon: ClassVar[str] = arrow((8, 15), (56, 15)) + dot(32, 15, 4) + arrow((32, 19), (32, 37))
    channels: ClassVar[str] = "1:2"
    messages: ClassVar[str] = "1:2"

    def sends_to(self) -> tuple[str, ...]:
        return (self.target,)

    def detail(self) -> str:
        return f"copy -> {self.target}"

    @classmethod
    def read(cls, item: Item) -> Node:
        return tap(item.text())

    def write(self) -> object:
        return self.target


def tap(target: str) -> Tap:
    return Tap(check_channel(target))


class TapVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Tap,)

    def tap(self, target: str, name: str | None = None) -> Self:
        """Wire tap: a copy to a channel, and on."""
        return self.then(lambda: tap(target), name)

"""Wire tap: a copy goes to another channel, the message goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.patterns.node import NO_USER, Node, check_channel


@dataclass(frozen=True, slots=True)
class Tap(Node):
    target: str

    verb: ClassVar[str] = "tap"
    pattern: ClassVar[str] = "wire tap"
    template: ClassVar[str] = NO_USER
    channels: ClassVar[str] = "1:2"
    messages: ClassVar[str] = "1:2"

    def sends_to(self) -> tuple[str, ...]:
        return (self.target,)

    def detail(self) -> str:
        return f"copy -> {self.target}"


def tap(target: str) -> Tap:
    return Tap(check_channel(target))

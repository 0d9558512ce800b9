"""Multicast: every channel gets its own copy of the message, maybe only as long as no copy before it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.budget import ON_EXCEPTION, Budget, check_stop
from penstock.errors import BadRoute
from penstock.patterns.node import NO_USER, Node, check_channel


@dataclass(frozen=True, slots=True)
class Multicast(Node):
    targets: tuple[str, ...]
    stop_on_exception: bool = False

    verb: ClassVar[str] = "multicast"
    pattern: ClassVar[str] = "multicast"
    template: ClassVar[str] = NO_USER
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


def multicast(*targets: str, stop_on_exception: bool = False) -> Multicast:
    if not targets or len(set(targets)) != len(targets):
        raise BadRoute(f"multicast to {list(targets)!r}", fix="name each channel once, at least one")
    return Multicast(tuple(check_channel(target) for target in targets), check_stop(stop_on_exception))

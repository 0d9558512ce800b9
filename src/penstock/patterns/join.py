"""Join router: several channels become one; no condition, no copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.errors import BadRoute
from penstock.patterns.node import NO_USER, Node, check_channel


@dataclass(frozen=True, slots=True)
class Join(Node):
    sources: tuple[str, ...]

    verb: ClassVar[str] = "join"
    pattern: ClassVar[str] = "join router"
    template: ClassVar[str] = NO_USER
    channels: ClassVar[str] = "n:1"

    def detail(self) -> str:
        return f"{', '.join(self.sources)} ->"


def join(*sources: str) -> Join:
    """Read several channels as one: `Route("all", join("errors", "telemetry"))`."""
    if len(sources) < 2 or len(set(sources)) != len(sources):
        raise BadRoute(f"join of {list(sources)!r}", fix="name at least two channels, each once")
    return Join(tuple(check_channel(source) for source in sources))

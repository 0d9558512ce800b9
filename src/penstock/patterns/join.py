"""Join router: several channels become one; no condition, no copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.errors import BadRoute
from penstock.patterns.drawing import arrow, dot, line
from penstock.patterns.node import NO_USER, Node, check_channel

if TYPE_CHECKING:
    from penstock.yaml.item import Item


@dataclass(frozen=True, slots=True)
class Join(Node):
    sources: tuple[str, ...]

    verb: ClassVar[str] = "join"
    pattern: ClassVar[str] = "join router"
    template: ClassVar[str] = NO_USER
    icon: ClassVar[str] = (
        line((8, 11), (22, 11), (34, 22)) + line((8, 33), (22, 33), (34, 22)) + dot(34, 22) + arrow((36, 22), (55, 22))
    )
    channels: ClassVar[str] = "n:1"

    def detail(self) -> str:
        return f"{', '.join(self.sources)} ->"

    @classmethod
    def readers(cls) -> Mapping[str, Callable[[Item], Node]]:
        return {}  # it is no step, but what a route reads


def join(*sources: str) -> Join:
    """Read several channels as one: `Route("all", join("errors", "telemetry"))`."""
    if len(sources) < 2 or len(set(sources)) != len(sources):
        raise BadRoute(f"join of {list(sources)!r}", fix="name at least two channels, each once")
    return Join(tuple(check_channel(source) for source in sources))

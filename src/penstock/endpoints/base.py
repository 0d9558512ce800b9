"""What a route can start from and end in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.delivery import BEST_EFFORT
from penstock.formats import Format


@dataclass(frozen=True, slots=True)
class Source:
    """Where messages come from; `format` says how their bodies are read.

    A `replayable` source gives the same messages again after a crash. An `ordered` one is read in its own order.
    """

    kind: ClassVar[str]
    ordered: ClassVar[bool] = True

    @property
    def replayable(self) -> bool:
        return True

    @property
    def body_format(self) -> Format:
        raise AssertionError(f"{type(self).__name__} has no format")

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class Sink:
    """Where messages go. `guarantee` is what a replayed batch leaves there; `columns` says that fields are columns.

    `delivery` is the most that messages are promised there.
    """

    kind: ClassVar[str]
    guarantee: ClassVar[str]
    delivery: ClassVar[str] = BEST_EFFORT
    columns: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.kind

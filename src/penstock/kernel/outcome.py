"""The outcome of a step: the messages that it sends on, filters, or makes dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.failures import said
from penstock.kernel.block import Block, Numbers

NEXT = None
"""The target of messages that stay in their route: its next step."""


class Raised(Sequence[str]):
    """Why messages failed, as texts that are written only when somebody asks: most failures are tried again."""

    def __init__(self, reasons: Sequence[str | Exception]) -> None:
        self.reasons = reasons

    def __len__(self) -> int:
        return len(self.reasons)

    def __getitem__(self, row: Any) -> Any:
        reason = self.reasons[row]
        return said(reason) if isinstance(reason, Exception) else reason


@dataclass(frozen=True)
class Moved:
    """Messages that go to a channel, or to the next step; `rows` are their positions in the block that came in.

    `number` is the number of the part or copy, where a step makes several messages of one.
    """

    to: str | None
    block: Block
    rows: Numbers
    number: Numbers | None = None

    def some(self, chosen: Numbers) -> Moved:
        number = None if self.number is None else self.number[chosen]
        return Moved(self.to, self.block.take(chosen), self.rows[chosen], number)


@dataclass(frozen=True)
class Died:
    """Messages that failed at a step, each with its error and its reason."""

    block: Block
    rows: Numbers
    errors: Sequence[str]
    reasons: Sequence[str]
    number: Numbers | None = None

    def some(self, chosen: Numbers) -> Died:
        if len(chosen) == len(self.rows) and bool((chosen == np.arange(len(chosen))).all()):
            return self
        number = None if self.number is None else self.number[chosen]
        errors, reasons = ([of[row] for row in chosen.tolist()] for of in (self.errors, self.reasons))
        return Died(self.block.take(chosen), self.rows[chosen], errors, reasons, number)


@dataclass(frozen=True)
class Letters:
    """Dead letters, with the route and the step where they failed."""

    route: str
    step: str
    died: Died


@dataclass
class Outcome:
    """What a step did: every message that came is moved, dead, filtered (by position) or undecided.

    Undecided messages come to the same step again in the next batch, when the fate of the first one with their key is
    known.
    """

    moved: list[Moved] = field(default_factory=list)
    died: list[Died] = field(default_factory=list)
    filtered: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    undecided: Block | None = None

    def move(self, to: str | None, block: Block, chosen: Numbers, number: int | None = None) -> None:
        """Send messages on as they are; `chosen` is a flag for each message of the block."""
        rows = np.flatnonzero(chosen)
        if len(rows):
            going = block if len(rows) == len(block) else block.take(rows)
            self.moved.append(Moved(to, going, rows, None if number is None else np.full(len(rows), number)))

    def bury(self, block: Block, rows: Numbers, error: str, reasons: Sequence[str]) -> None:
        if len(rows):
            self.died.append(Died(block.take(rows), rows, [error] * len(rows), reasons))

    def add(self, other: Outcome, rows: Numbers) -> None:
        """Add the outcome of some messages of the block, which are at the positions `rows`."""
        self.moved += [replace(one, rows=rows[one.rows]) for one in other.moved]
        self.died += [replace(one, rows=rows[one.rows]) for one in other.died]
        self.filtered = np.concatenate([self.filtered, rows[other.filtered]])

    @property
    def count(self) -> int:
        """How many messages there are after the step."""
        return (
            sum(len(one.rows) for one in self.moved) + sum(len(one.rows) for one in self.died) + len(self.filtered)
        )

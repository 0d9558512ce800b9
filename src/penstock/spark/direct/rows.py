"""The messages of a block, where they are, and what simple steps do with all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.nodes import Expr
from penstock.expr.values import value_batch
from penstock.expr.vectorized import evaluate_batch
from penstock.spark.times import Times

Numbers: TypeAlias = npt.NDArray[Any]
GATHERED = -1_000_002
"""The place of messages that wait for others of their group."""


@dataclass
class Rows:
    """One entry per message: its place, the body of the block that it was, and the part of it that it is, if it is one.

    `bits` counts how many came to a step or were made by it as copies; if `times` of bodies are known, `came` has those
    of who came. `keys` are those of the messages that are gathered, and `keyless` says which ones would be if they had
    one.
    """

    decoded: pa.StructArray | None
    offsets: Numbers
    parts: pa.ListArray | None
    at: Numbers
    body: Numbers
    part: Numbers | None = None
    number: Numbers | None = None
    bits: Counter[int] = field(default_factory=Counter)
    keys: Sequence[pa.Array] = ()
    keyless: Numbers | None = None
    times: Numbers | None = None
    came: dict[int, Times] = field(default_factory=dict)

    def copy(self, times: Numbers) -> Numbers:
        """Every message so many times; returns which one of its copies each is."""
        rows = np.repeat(np.arange(len(self.at)), times)
        self.at, self.body = self.at[rows], self.body[rows]
        self.part = None if self.part is None else self.part[rows]
        self.number = None if self.number is None else self.number[rows]
        starts = np.cumsum(times) - times
        copies: Numbers = np.arange(len(rows)) - starts[rows]
        return copies


def times_of(times: Numbers) -> Times:
    """Of messages; not a number where none is known."""
    known = times[~np.isnan(times)]
    return Times(len(times), float(known.mean()), float(known.min())) if len(known) else Times(len(times))


class Step(Protocol):
    """What a step of a plan does with the rows that are at its route."""

    def __call__(self, rows: Rows, here: Numbers) -> None: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """A step in its place; `bit` counts those who come to it."""

    place: int
    bit: int
    step: Step | None

    def __call__(self, rows: Rows) -> None:
        here = rows.at == self.place
        count = int(np.count_nonzero(here))
        rows.bits[self.bit] += count
        if rows.times is not None and count:
            rows.came[self.bit] = times_of(rows.times[rows.body[here]])
        if self.step is not None and count:
            self.step(rows, here)


@dataclass(frozen=True, slots=True)
class Sift:
    """A filter: those who do not pass go elsewhere."""

    condition: Expr
    otherwise: int

    def __call__(self, rows: Rows, here: Numbers) -> None:
        passes = evaluate_batch(self.condition, rows.decoded).to_numpy(zero_copy_only=False)
        rows.at[here & ~passes[rows.body]] = self.otherwise


@dataclass(frozen=True, slots=True)
class Choose:
    """A choice: the number of the case that applies says where to."""

    case: Expr
    places: tuple[int, ...]

    def __call__(self, rows: Rows, here: Numbers) -> None:
        chosen = np.array(self.places, np.int32)[evaluate_batch(self.case, rows.decoded).to_numpy()]
        rows.at = np.where(here, chosen[rows.body], rows.at)


@dataclass(frozen=True, slots=True)
class Send:
    target: int

    def __call__(self, rows: Rows, here: Numbers) -> None:
        rows.at[here] = self.target


@dataclass(frozen=True, slots=True)
class TakeTurns:
    """A load balancer by position: of a part in its message, else of the message in its file or partition."""

    limits: tuple[int, ...]
    places: tuple[int, ...]

    def __call__(self, rows: Rows, here: Numbers) -> None:
        number = rows.offsets[rows.body]
        if rows.number is not None:
            number = np.where(rows.number >= 0, rows.number, number)
        turns = np.searchsorted(self.limits, number % self.limits[-1], side="right")
        rows.at = np.where(here, np.array(self.places, np.int32)[turns], rows.at)


@dataclass(frozen=True, slots=True)
class Copy:
    """A multicast or a wire tap: one copy for every place."""

    places: tuple[int, ...]
    bit: int

    def __call__(self, rows: Rows, here: Numbers) -> None:
        times = np.where(here, len(self.places), 1)
        mine = np.repeat(here, times)
        rows.bits[self.bit] += len(mine) - len(here)
        copies = rows.copy(times)
        rows.at = np.where(mine, np.array(self.places, np.int32)[copies], rows.at)


@dataclass(frozen=True, slots=True)
class Part:
    """A splitter whose parts the decoder has written; a message without any is filtered."""

    empty: int
    bit: int

    def __call__(self, rows: Rows, here: Numbers) -> None:
        assert rows.parts is not None
        ends = np.frombuffer(rows.parts.buffers()[1], np.int32)[: len(rows.parts) + 1]
        lengths = np.diff(ends)[rows.body]
        rows.at[here & (lengths == 0)] = self.empty
        times = np.where(here, np.maximum(lengths, 1), 1)
        mine = np.repeat(here & (lengths > 0), times)
        rows.bits[self.bit] += int(times.sum()) - len(times)
        copies = rows.copy(times)
        rows.part = np.where(mine, ends[rows.body] + copies, -1)
        rows.number = np.where(mine, copies, -1)


@dataclass(frozen=True, slots=True)
class Gather:
    """An aggregator: messages go no further in this job; those without a key go elsewhere."""

    keys: tuple[Expr, ...]
    invalid: int

    def __call__(self, rows: Rows, here: Numbers) -> None:
        rows.keys = [value_batch(key, rows.decoded) for key in self.keys]
        known = np.ones(len(here), bool)
        for key in rows.keys:
            if key.null_count:
                known &= key.is_valid().to_numpy(zero_copy_only=False)
        rows.at = np.where(here, np.where(known, GATHERED, self.invalid), rows.at).astype(np.int32)
        rows.keyless = np.flatnonzero(here & ~known)

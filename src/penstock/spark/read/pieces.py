"""A source as pieces that tasks read: chunks of files, ranges of offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True)
class Block:
    """Neighbouring messages: bodies, where each is, and time and headers, if the source gives any."""

    bodies: pa.Array
    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    times: pa.Array | None = None
    headers: pa.Array | None = None

    def slice(self, start: int, length: int) -> Block:
        times = None if self.times is None else self.times.slice(start, length)
        headers = None if self.headers is None else self.headers.slice(start, length)
        bodies, offsets = self.bodies.slice(start, length), self.offsets[start : start + length]
        return Block(bodies, self.topic, self.partition, offsets, times, headers)


class Sized(Protocol):
    """A piece; `size` is about the number of its bytes."""

    @property
    def size(self) -> int: ...


Piece = TypeVar("Piece", bound=Sized)


class Pieces(Protocol[Piece]):
    """Pickled to the tasks. `timed` sources give times and headers."""

    timed: bool

    def found(self, cores: int) -> list[Piece]:
        """All that is there now, in enough pieces for so many tasks."""

    def blocks(self, piece: Piece) -> Iterator[Block]: ...


class PieceStream(Protocol):
    """A source as a stream of pieces; offsets are what Spark keeps of it in its checkpoint."""

    @property
    def pieces(self) -> Pieces[Any]: ...

    def initialOffset(self) -> dict[str, int]: ...

    def between(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Sized]:
        """What is behind one offset, up to another one."""

"""A source as pieces that tasks read: chunks of files, ranges of offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from penstock.errors import BadEndpoint
from penstock.kernel.block import Arrived


class Sized(Protocol):
    """A piece; `size` is about the number of its bytes."""

    @property
    def size(self) -> int: ...


ROWS_AT_ONCE = 10_000
"""The most messages of a block, where a source gives them one by one."""

Piece = TypeVar("Piece", bound=Sized)


class Pieces(Protocol[Piece]):
    """A source that gives its messages piece by piece; pickled to the tasks."""

    def found(self, cores: int) -> list[Piece]:
        """Everything the source has now, in enough pieces for so many tasks."""

    def blocks(self, piece: Piece) -> Iterator[Arrived]: ...


class PieceStream(Protocol):
    """A source as a stream of pieces; Spark keeps its offsets in the checkpoint."""

    @property
    def pieces(self) -> Pieces[Any]: ...

    def initialOffset(self) -> dict[str, int]: ...

    def between(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Sized]:
        """The pieces behind the offset `start`, up to the offset `end`."""


def found(pieces: Pieces[Any], cores: int) -> list[Sized]:
    """Everything a source has now, in enough pieces for so many tasks; raises BadEndpoint if it cannot be read."""
    try:
        return pieces.found(cores)
    except OSError as error:  # a file that has gone meanwhile
        raise BadEndpoint(f"cannot read {error.filename or 'a source'}: {error.strerror or error}") from None

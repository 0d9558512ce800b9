"""All that a source has now, read in one pass by tasks that share it."""

from __future__ import annotations

from typing import Any

from penstock.errors import BadEndpoint
from penstock.spark.read.pieces import Pieces, Sized


def found(pieces: Pieces[Any], cores: int) -> list[Sized]:
    try:
        return pieces.found(cores)
    except OSError as error:  # a file that has gone meanwhile
        raise BadEndpoint(f"cannot read {error.filename or 'a source'}: {error.strerror or error}") from None

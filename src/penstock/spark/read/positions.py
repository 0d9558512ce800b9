"""Whether a checkpoint has the positions that sources give now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.endpoints.files import Files, Parquet, Table
from penstock.endpoints.memory import Memory
from penstock.endpoints.simple import Rate
from penstock.errors import ChangedApp
from penstock.plan.plan import Entry


def check_positions(entries: Iterable[Entry], positions: Sequence[Any]) -> None:
    """Streams of earlier versions read Parquet through Spark, which counted other things than we do."""
    for entry, position in zip(entries, positions, strict=False):
        if position is not None and not _is_known(entry, position):
            raise ChangedApp(
                f"route {entry.route!r} reads {entry.source}, and the checkpoint has a position of another kind for it:"
                f" {position}, as an earlier version wrote it",
                fix="start with a new checkpoint; what was read already is read again, unless you move it elsewhere",
            )


def _is_known(entry: Entry, position: Any) -> bool:
    if not isinstance(position, dict):
        return False
    match entry.source:
        case Files() | Parquet() | Table():
            return position.keys() == {"chunks"}
        case Memory():
            return position.keys() == {"rows"}
        case Rate():
            return position.keys() == {"started", "rows"}
    return all(partition.isdigit() for partition in position)

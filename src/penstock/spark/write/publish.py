"""The driver's part: staged files become visible under the key of their run or batch, all or nothing per file.

The same key again replaces what it published before, so a replayed batch changes no sink.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.errors import BadEndpoint
from penstock.message import DeadLetter, Lineage, Message, Position
from penstock.spark.write.outlets import KEEP, Target, staging


@dataclass(frozen=True)
class Staged:
    """One line of the manifest."""

    place: int
    path: str
    rows: int
    partition: int


@dataclass
class Kept:
    """What arrived in the sinks that keep messages in the driver, by channel."""

    messages: dict[str, list[Message]] = field(default_factory=dict)
    dead: list[DeadLetter] = field(default_factory=list)


def publish(
    staged: Iterable[Staged], targets: Mapping[int, Target], key: str, run: str, scratch: str, first: bool
) -> Kept:
    """Move staged files to their final names and read back what the driver keeps.

    `first` is the first batch of a run: the one that clears sinks whose mode is overwrite.
    """
    listed = sorted(staged, key=lambda line: (line.place, line.partition))
    kept = Kept()
    for place, target in targets.items():
        mine = [line for line in listed if line.place == place]
        if target.style == KEEP:
            for line in mine:
                _read_back(line.path, target, kept)
        else:
            _move(mine, target, key, clear=first and target.overwrite)
            shutil.rmtree(staging(target, run, scratch), ignore_errors=True)
            _remove_if_empty(os.path.join(str(target.directory), "_staging"))
    shutil.rmtree(os.path.join(scratch, run), ignore_errors=True)
    return kept


def check_visible(listed: Iterable[Staged], targets: Mapping[int, Target]) -> None:
    """On a cluster a task may have written to the disk of its own machine."""
    for line in listed:
        if not os.path.exists(line.path):
            directory = targets[line.place].directory
            raise BadEndpoint(
                f"a task wrote {line.path}, and the driver does not see it",
                fix=f"all machines of the cluster have to share {directory}"
                if directory
                else "sinks that keep messages in the driver need a TMPDIR that all machines share",
            )


def discard(targets: Mapping[int, Target], run: str, scratch: str) -> None:
    """Forget what a failed run staged."""
    for target in targets.values():
        shutil.rmtree(staging(target, run, scratch), ignore_errors=True)
        if target.directory:
            _remove_if_empty(os.path.join(target.directory, "_staging"))


def _move(lines: list[Staged], target: Target, key: str, clear: bool) -> None:
    directory = str(target.directory)
    if not lines and not os.path.isdir(directory):
        return
    before = os.listdir(directory) if os.path.isdir(directory) else []
    files = [name for name in before if os.path.isfile(os.path.join(directory, name))]
    visible = [name for name in files if not name.startswith(("_", "."))]
    stale = {name for name in visible if clear or name.startswith(f"{key}-")}
    for line in lines:
        name = f"{key}-{line.partition:05d}.{target.ending}"
        os.replace(line.path, os.path.join(directory, name))
        stale.discard(name)
    for name in stale:
        os.remove(os.path.join(directory, name))
    if lines or stale:
        _sync(directory)


def _sync(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_if_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return


def _read_back(path: str, target: Target, kept: Kept) -> None:
    with pa.memory_map(path) as file:
        rows = pa.ipc.open_file(file).read_all().to_pylist()
    for row in rows:
        message = _message(row["body"], row["meta"])
        if target.dead:
            error = row["meta"]["error"]
            kept.dead.append(DeadLetter(message, error["route"], error["step"], error["error"], error["reason"]))
        else:
            kept.messages.setdefault(target.channel, []).append(message)


def _message(body: bytes, meta: Mapping[str, Any]) -> Message:
    lineage = Lineage(meta["parent"], meta["index"], meta["count"]) if meta["parent"] is not None else None
    position = Position(meta["topic"], meta["partition"], meta["offset"])
    return Message(
        meta["id"], body, headers=dict(meta["headers"] or ()), attachments=dict(meta["attachments"] or ()),
        position=position, time=meta["time"], lineage=lineage,
    )  # fmt: skip

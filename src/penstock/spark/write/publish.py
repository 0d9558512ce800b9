"""Publish a batch, in the driver: what its tasks staged becomes visible in every sink, under the key of the batch.

Publishing the same intent again changes nothing, and goes on where a crash stopped it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.delivery import EXACTLY_ONCE, includes
from penstock.durable import sync_all
from penstock.endpoints.kafka import KafkaTopic
from penstock.errors import BadEndpoint
from penstock.message import DeadLetter, Lineage, Message, Position
from penstock.spark.write import kafka, logs
from penstock.spark.write.intent import Intent, StagedFile
from penstock.spark.write.outlets import FRAMES, KEEP, ROWS, Target
from penstock.spark.write.postgres import load
from penstock.spark.write.staging import Staging


@dataclass
class Kept:
    """The messages of sinks that keep them in the driver, by channel."""

    messages: dict[str, list[Message]] = field(default_factory=dict)
    dead: list[DeadLetter] = field(default_factory=list)


def publish(
    intent: Intent, targets: Mapping[int, Target], staging: Staging, first: bool = False, again: bool = False
) -> Kept:
    """Make what was staged visible, and read back what the driver keeps.

    `first` is the first batch of a run, which clears sinks whose mode is overwrite. `again` is a batch that was
    computed before a crash: its intent has no files of sinks with best effort, so what these have published stays.
    """
    kept = Kept()
    files: dict[str, list[StagedFile]] = {target.name: [] for target in targets.values()}
    owners = {target.name: target for target in targets.values()}
    for file in sorted(intent.files, key=lambda file: file.partition):
        if file.channel not in files:
            raise BadEndpoint(f"batch {intent.key} was computed for channel {file.channel!r}, which has no sink now",
                              fix="start the app as it was once more, then change it")  # fmt: skip
        staging.check_owned(owners[file.channel], file)
        files[file.channel].append(file)
    # Servers first: they are the ones that may refuse.
    for target in sorted(targets.values(), key=lambda target: target.style not in (ROWS, FRAMES)):
        mine = files[target.name]
        if target.style == ROWS:
            load(mine, target, intent.key)
        elif target.style == FRAMES:
            (kafka.send if isinstance(target.topic, KafkaTopic) else logs.append)(mine, target, intent.key)
        elif target.style == KEEP:
            for file in mine:
                _read_back(file.path, target, kept)
        else:
            for file in mine:
                _rename(file)
            if first or not (again or includes(target.delivery, EXACTLY_ONCE)):
                _remove_others(mine, target, intent.key, clear=first and target.overwrite)
    lasting = {target.name for target in targets.values() if target.lasts}
    sync_all(os.path.dirname(file.final) for file in intent.files if file.final and file.channel in lasting)
    for target in targets.values():
        staging.clear(target)
    return kept


def _remove_others(files: list[StagedFile], target: Target, key: str, clear: bool) -> None:
    """Remove what an earlier attempt at this batch has published, or everything from before."""
    directory, mine = str(target.directory), {os.path.basename(str(file.final)) for file in files}
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        path = os.path.join(directory, name)
        stale = name.startswith(f"{key}-") or (clear and not name.startswith(("_", ".")))
        if stale and name not in mine and os.path.isfile(path):
            os.remove(path)


def _rename(file: StagedFile) -> None:
    try:
        os.replace(file.path, str(file.final))
    except FileNotFoundError:
        if not os.path.exists(str(file.final)):
            raise BadEndpoint(f"a batch was computed, but neither {file.path} nor {file.final} is there",
                              fix="restore one of them, or start with a new checkpoint") from None  # fmt: skip


def _read_back(path: str, target: Target, kept: Kept) -> None:
    with pa.memory_map(path) as file:
        rows = pa.ipc.open_file(file).read_all().to_pylist()
    for row in rows:
        message = _message(row["body"], row["meta"])
        if target.dead:
            kept.dead.append(_dead_letter(message, row["meta"]))
        else:
            kept.messages.setdefault(target.channel, []).append(message)


def _dead_letter(message: Message, meta: Mapping[str, Any]) -> DeadLetter:
    error, fields = meta["error"], meta["fields"]
    if fields is not None:
        message = message.with_fields(json.loads(fields))
    return DeadLetter(message, error["route"], error["step"], error["error"], error["reason"], meta["attempt"])


def _message(body: bytes, meta: Mapping[str, Any]) -> Message:
    lineage = Lineage(meta["parent"], meta["index"], meta["count"]) if meta["parent"] is not None else None
    position = Position(meta["topic"], meta["partition"], meta["offset"])
    return Message(
        meta["id"], body, headers=dict(meta["headers"] or ()), attachments=dict(meta["attachments"] or ()),
        position=position, time=meta["time"], lineage=lineage,
    )  # fmt: skip

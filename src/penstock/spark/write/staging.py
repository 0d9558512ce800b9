"""The directories where tasks leave their files until the batch is published."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.durable import remove_if_empty, sync_all
from penstock.errors import BadEndpoint
from penstock.spark.write.gate import Gate
from penstock.spark.write.intent import StagedFile
from penstock.spark.write.outlets import KEEP, Target


@dataclass(frozen=True)
class Staging:
    """The directories of one attempt to compute a batch; pickled to the tasks.

    Files are staged on the file system of the place where they end, so that a rename is all that is left.
    `scratch` ends with the process; rows for a server wait in `lasting`, beside the checkpoint of a stream.
    Another attempt has other names and removes what this one left.
    """

    key: str
    scratch: str
    lasting: str
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def gate(self) -> Gate:
        """The gate that tasks pass before they write."""
        return Gate(os.path.join(self.scratch, "tasks"))

    def directory(self, target: Target) -> str:
        return os.path.join(self.parent(target), f"{self.key}.{self.attempt}")

    def final(self, target: Target, partition: int) -> str | None:
        """The name that a file gets when it is published."""
        if target.directory is None:
            return None
        return os.path.join(target.directory, f"{self.key}-{partition:05d}.{target.ending}")

    def seal(self, targets: Iterable[Target], files: Iterable[StagedFile]) -> None:
        """Fsync the directories of staged files, because the intent names these files."""
        filled = {file.channel for file in files}
        places = [self.directory(target) for target in targets if target.name in filled]
        parents = [os.path.dirname(place) for place in places]
        sync_all([*places, *parents, *map(os.path.dirname, parents)])

    def holds(self, file: StagedFile) -> bool:
        """Whether this attempt has staged the file."""
        return os.path.basename(os.path.dirname(file.path)) == f"{self.key}.{self.attempt}"

    def check_owned(self, target: Target, file: StagedFile) -> None:
        """Raise if an intent, which anybody may have changed, moves a file that is not its own, or to another sink."""
        staged, parent = os.path.dirname(os.path.abspath(file.path)), self.parent(target)
        is_ours = os.path.basename(staged).startswith(self.key) and _same(os.path.dirname(staged), parent)
        if target.directory is None:
            is_ours = is_ours and file.final is None
        elif is_ours:
            is_ours = file.final is not None and os.path.basename(file.final).startswith(f"{self.key}-")
            is_ours = is_ours and _same(os.path.dirname(str(file.final)), target.directory)
        if not is_ours or os.path.islink(file.path):
            moved = f"{file.path} to {file.final}" if file.final else file.path
            raise BadEndpoint(
                f"batch {self.key} says that {moved} is for {target.called}, which stages in {parent}"
                + (f" and writes to {target.directory}" if target.directory else ""),
                fix="start the app as it was; if so, its checkpoint was changed: restore it, or start with a new one",
            )

    def check_visible(self, target: Target, path: str) -> None:
        """Raise if the driver does not see a file: on a cluster a task may have written to its own machine's disk."""
        if not os.path.exists(path):
            beside = self.lasting if target.style != KEEP and self.lasting != self.scratch else None
            shared = target.directory or beside or "a TMPDIR for sinks that keep messages in the driver"
            raise BadEndpoint(f"a task wrote {path}, and the driver does not see it",
                              fix=f"all machines of the cluster have to share {shared}")  # fmt: skip

    def clear(self, target: Target) -> None:
        """Remove what any attempt at this batch has left, published or not."""
        parent = self.parent(target)
        remove_staged(parent, f"{self.key}.")
        if target.directory:
            remove_if_empty(parent)

    def parent(self, target: Target) -> str:
        if target.directory:
            return os.path.join(target.directory, "_staging")
        return self.scratch if target.style == KEEP else self.lasting


def remove_staged(parent: str, keys: str) -> None:
    """Remove staged files under names that begin so; nobody may need them any more."""
    for name in os.listdir(parent) if os.path.isdir(parent) else ():
        path = os.path.join(parent, name)
        if name.startswith(keys) and os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)


def _same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)

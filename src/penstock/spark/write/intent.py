"""The intent of a batch: everything it will have done, written down before the first sink changes.

A batch whose intent is there is never computed again, only published again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from penstock.durable import sync_all, write_whole
from penstock.errors import BadEndpoint
from penstock.summary import Step

KEPT_INTENTS = 10
"""How many batches back a stream remembers its intents; Spark itself repeats only the last one."""


class Counts(msgspec.Struct, frozen=True):
    """Where the messages of one pass ended. `held` is how many more wait in state than before.

    `times` has, by channel, the average and the earliest time of the messages that went there; `step_times`, by
    "route.step", of those that came to the step.
    """

    delivered: Mapping[str, int]
    filtered: Mapping[str, int]
    dead: int
    copied: int
    held: int = 0
    steps: Mapping[str, Step] = {}
    times: Mapping[str, tuple[float, float]] = {}
    step_times: Mapping[str, tuple[float, float]] = {}

    @property
    def received(self) -> int:
        """How many messages came in, if none was lost."""
        known = sum(self.delivered.values()) + sum(self.filtered.values()) + self.dead + self.held
        return known - self.copied


class BatchKey(msgspec.Struct, frozen=True):
    """A batch of a stream, or the only one of a run."""

    stream: str
    number: int

    @classmethod
    def of(cls, key: str) -> BatchKey:
        stream, _, number = key.rpartition("-")
        return cls(stream, int(number)) if number.isdecimal() and len(number) == 9 else cls(key, 0)


class StagedFile(msgspec.Struct, frozen=True):
    """A file that a task wrote for a channel, and the name it gets there (none if it is loaded or only read)."""

    channel: str
    path: str
    final: str | None
    rows: int
    partition: int


class Intent(msgspec.Struct, frozen=True):
    """What publishing a batch needs. `notes` are JSON texts for the state, which are not read here."""

    key: str
    counts: Counts
    files: tuple[StagedFile, ...] = ()
    notes: tuple[str, ...] = ()
    offsets: str = ""


class NotedIntent:
    """A file with one intent: that of a stop or of a replay."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, intent: Intent) -> None:
        write_whole(self.path, msgspec.json.encode(intent))

    def read(self) -> Intent | None:
        return _read(self.path)

    def remove(self) -> None:
        os.remove(self.path)


class Journal:
    """The intents of a stream, one file per batch, in the directory of its checkpoint."""

    def __init__(self, checkpoint: str) -> None:
        self.directory = os.path.join(checkpoint, "penstock-batches")
        self.staging = os.path.join(checkpoint, "penstock-staging")
        self.offsets = os.path.join(checkpoint, "offsets")
        self.metadata = os.path.join(checkpoint, "metadata")

    @property
    def has_begun(self) -> bool:
        """Whether a stream of Spark's has a position here."""
        return os.path.exists(self.metadata) or self.has_batches

    @property
    def has_batches(self) -> bool:
        """Whether it has begun a batch, too."""
        return os.path.isdir(self.offsets) and bool(os.listdir(self.offsets))

    def write(self, number: int, intent: Intent) -> None:
        """Record the intent of a batch, which counts as computed from here on, and remove those of long ago."""
        os.makedirs(self.directory, exist_ok=True)
        sealed = msgspec.structs.replace(intent, offsets=self._seal(number))
        write_whole(self._path(number), msgspec.json.encode(sealed))
        for name in sorted(os.listdir(self.directory)):
            stem = name.removesuffix(".json")
            if name.startswith(".") or (stem.isdigit() and int(stem) <= number - KEPT_INTENTS):
                with suppress(FileNotFoundError):
                    os.remove(os.path.join(self.directory, name))

    def find(self, number: int, query: str) -> Intent | None:
        """The intent of this batch of this query, if it was computed."""
        intent = _read(self._path(number))
        if intent is None:
            return None
        if not intent.key.endswith(f"-{query}-{number:09d}"):
            return None  # of a stream whose checkpoint was deleted but for this
        if intent.offsets != self._seal(number):
            raise BadEndpoint(f"batch {number} was computed before, from other messages than its checkpoint says now",
                              fix="restore the checkpoint as it was, or start with a new one")  # fmt: skip
        return intent

    def after(self, number: int) -> list[int]:
        """The numbers of computed batches after this one."""
        names = sorted(os.listdir(self.directory)) if os.path.isdir(self.directory) else []
        return [int(name[:-5]) for name in names if name[:-5].isdigit() and int(name[:-5]) > number]

    def notes_after(self, number: int) -> list[str]:
        """The notes for the state of batches after this one, which are computed and not yet published."""
        intents = (_read(self._path(later)) for later in self.after(number))
        return [note for intent in intents if intent is not None for note in intent.notes]

    def _seal(self, number: int) -> str:
        """Fsync Spark's own file about which messages the batch has, because Spark does not."""
        path = os.path.join(self.offsets, str(number))
        if not os.path.exists(path):
            return ""
        known = (self.metadata,) if os.path.exists(self.metadata) else ()
        sync_all((path, self.offsets, *known, os.path.dirname(self.metadata)))
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def _path(self, number: int) -> str:
        return os.path.join(self.directory, f"{number:09d}.json")


def _read(path: str) -> Intent | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Intent)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEndpoint(f"cannot read {path}: {error}",
                          fix="restore the checkpoint, or start with a new one") from None  # fmt: skip

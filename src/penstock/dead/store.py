"""Where an app's dead letters are, and which of them were replayed.

Dead letters are never changed. Beside them is a record per replay: the letters it took, and, until everything is
published, what is still to be published.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from penstock.cache import cache_directory
from penstock.dead.letter import Letter, stored_letter
from penstock.endpoints.files import Files, Parquet, Table, find_files
from penstock.endpoints.postgres import Postgres
from penstock.errors import BadEndpoint
from penstock.route.app import App

REPLAYS = "_replays"
_ENDINGS = (".jsonl", ".txt", ".parquet")


class Replay(msgspec.Struct, frozen=True):
    """A replay that counts: its letters are replayed. `pending` is its intent, until that is published.

    One into the state of a stream counts only if that `checkpoint` says so, too.
    """

    key: str
    time: str
    at: str
    letters: tuple[str, ...]
    pending: str = ""
    checkpoint: str = ""


class Store(Protocol):
    """Dead letters and replays; `staging` is a directory that outlives the process."""

    @property
    def staging(self) -> str: ...

    def stored(self) -> Iterator[Letter]: ...

    def replays(self) -> list[Replay]: ...

    def write(self, replay: Replay) -> None:
        """The record is there with all of its content or not at all; it takes the place of one with its key."""


def store_of(app: App) -> Store:
    """The store behind the sink of an app's dead letters."""
    sink = app.dead_letters
    match sink:
        case Files() | Parquet() | Table():
            return Directory(os.path.abspath(sink.path))
        case Postgres():
            return Server(sink, app.name)
    raise BadEndpoint(f"the dead letters of app {app.name!r} go to {sink}, where they cannot be found again",
                      app.origin, "write App(..., dead_letters=Files(...)), or Parquet, Table or Postgres",
                      )  # fmt: skip


def letters(store: Store) -> Iterator[Letter]:
    """All dead letters, each with the number of its replays."""
    counted = Counter(name for replay in store.replays() for name in replay.letters)
    for letter in store.stored():
        yield replace(letter, replays=counted[letter.name])


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """One replay at a time."""
    os.makedirs(store.staging, exist_ok=True)
    with open(os.path.join(store.staging, "lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadEndpoint("these dead letters are being replayed now", fix="wait until that has ended") from None
        yield


@dataclass(frozen=True)
class Directory:
    """Files of JSON lines, or of Parquet, and a directory of replays among them."""

    path: str

    @property
    def staging(self) -> str:
        return os.path.join(self.path, REPLAYS)

    def stored(self) -> Iterator[Letter]:
        for file in find_files(self.path):
            if file.endswith(_ENDINGS):
                yield from _letters(file)

    def replays(self) -> list[Replay]:
        names = sorted(os.listdir(self.staging)) if os.path.isdir(self.staging) else []
        return [_read(os.path.join(self.staging, name)) for name in names
                if name.endswith(".json") and not name.startswith(".")]  # fmt: skip

    def write(self, replay: Replay) -> None:
        from penstock.durable import sync, write_whole

        os.makedirs(self.staging, exist_ok=True)
        sync(self.path)
        write_whole(os.path.join(self.staging, f"{replay.key}.json"), msgspec.json.encode(replay))


def _letters(file: str) -> Iterator[Letter]:
    for number, row in enumerate(_rows(file), 1):
        try:
            letter = stored_letter(json.loads(row) if isinstance(row, bytes) else row)
        except (ValueError, RecursionError):
            raise BadEndpoint(f"line {number} of {file} is not a dead letter",
                              fix="keep other files out of the directory of dead letters") from None  # fmt: skip
        yield letter


def _rows(file: str) -> Iterator[Any]:
    """Rows of columns, or lines."""
    if file.endswith(".parquet"):
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches():
                yield from batch.to_pylist()
        return
    with open(file, "rb") as lines:
        yield from lines


def _read(path: str) -> Replay:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Replay)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEndpoint(f"cannot read {path}: {error}",
                          fix="restore it: it says which letters were replayed") from None  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A table on a PostgreSQL server, and another one for replays. What waits to be loaded is on this machine."""

    sink: Postgres
    app: str

    @property
    def staging(self) -> str:
        return str(cache_directory() / "replays" / self.app)

    def stored(self) -> Iterator[Letter]:
        from penstock.spark.write.postgres import dead_letters

        yield from map(stored_letter, dead_letters(self.sink))

    def replays(self) -> list[Replay]:
        from penstock.spark.write.postgres import replays

        return [msgspec.json.decode(text, type=Replay) for text in replays(self.sink)]

    def write(self, replay: Replay) -> None:
        from penstock.spark.write.postgres import write_replay

        write_replay(self.sink, replay.key, msgspec.json.encode(replay).decode())

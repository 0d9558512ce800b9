"""Lock a checkpoint, so that one process at a time works with it, and check that it is still one stream's."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from penstock.errors import BadEndpoint, CheckpointInUse

LOCK = "penstock-lock"
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def owned(place: str, by: str) -> Iterator[None]:
    """Lock the checkpoint for a stream or a replay; while another process has the lock, an error names it at once.

    The operating system releases the lock when the process ends, so there is nothing to clean up after a crash. On a
    file system without locks only Spark's own check is left.
    """
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, LOCK), "a+b") as file:
        _take(file, place)
        owner = {"owner": by, "pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
        file.truncate(0)
        file.write(json.dumps(owner).encode() + b"\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def refuse_if_owned(place: str) -> None:
    """Raise if another process has locked the checkpoint, before anything slow begins."""
    path = os.path.join(place, LOCK)
    if os.path.exists(path):
        with open(path, "a+b") as file:
            _take(file, place)


def _take(file: BinaryIO, place: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CheckpointInUse(f"the checkpoint {place} belongs to {_owner(file)}",
                              fix="stop that one first, or use a checkpoint of its own") from None  # fmt: skip
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise


def _owner(file: BinaryIO) -> str:
    file.seek(0)
    try:
        known = json.loads(file.read())
        return f"{known['owner']}: process {known['pid']} on {known['host']}, since {known['since']}"
    except (ValueError, KeyError, TypeError):  # it is about to write its name, or to go
        return "another process"


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def check_whole(place: str) -> None:
    """Raise if the file `metadata` is missing, by which Spark knows the stream that the batches here belong to."""
    batches = planned(place)
    if batches and not os.path.exists(os.path.join(place, "metadata")):
        raise BadEndpoint(
            f"the checkpoint {place} has batches up to {max(batches)}, and its file 'metadata' is gone: under the new"
            " name that Spark would give the stream, the last batch could be published a second time",
            fix="restore the checkpoint as it was, or start with a new one",
        )


def state_of(place: str) -> str:
    """The directory in a checkpoint with the state of the stream's steps."""
    return os.path.join(place, "penstock-state")


def planned(place: str) -> list[int]:
    """The numbers of the batches that Spark has begun here."""
    offsets = os.path.join(place, "offsets")
    return [int(name) for name in os.listdir(offsets) if name.isdigit()] if os.path.isdir(offsets) else []

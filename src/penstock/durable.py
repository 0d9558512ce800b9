"""Write files so that they survive a power failure: write, fsync, and only then rename."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress


def sync(path: str) -> None:
    """Make a file's content, or a directory's list of names, last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(paths: Iterable[str]) -> None:
    """All of them at once: a file system that is asked together answers together."""
    chosen = list(dict.fromkeys(paths))
    if chosen:
        with ThreadPoolExecutor(min(len(chosen), 16)) as threads:
            list(threads.map(sync, chosen))


def write_whole(path: str, content: bytes, lasting: bool = True) -> None:
    """The file has all of this content or is as it was, whenever the machine stops; else whenever the process does."""
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}")
    with open(temporary, "wb") as file:
        file.write(content)
        if lasting:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if lasting:
        sync(directory)


def remove_if_empty(directory: str) -> None:
    with suppress(OSError):
        os.rmdir(directory)

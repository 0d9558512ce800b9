"""Let the driver wait until the last task has stopped writing, by locks on a file.

Spark reports that a task has ended when it has told it to stop, and its Python process may still write. So every task
holds a shared lock while it writes, which ends with its process, and the driver waits for an exclusive lock.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from penstock.errors import BadEndpoint


def _here() -> tuple[str, str]:
    """The machine and the mount namespace: containers of one machine may have one name and other files."""
    try:
        return socket.gethostname(), os.readlink("/proc/self/ns/mnt")
    except OSError:  # not Linux
        return socket.gethostname(), ""


@dataclass(frozen=True)
class Gate:
    """The lock file of a run; pickled to the tasks. A task that cannot see or read it writes without a gate.

    `seen_from` is the machine of the driver and its view of files: a task with the same view that does not find the
    file knows that the gate is closed.
    """

    path: str
    seen_from: tuple[str, str] = field(default_factory=_here)

    def open(self) -> None:
        with open(self.path, "ab"):
            pass

    def close(self) -> None:
        """Wait until no task writes; tasks that come later find the gate closed."""
        with suppress(FileNotFoundError), open(self.path, "r+b") as file:  # NFS locks what can be written
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            os.remove(self.path)

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Hold the shared lock, around everything that a task writes."""
        file = self._opened()
        with file or nullcontext():
            if file is not None:
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_SH)
                if not self._is(file):
                    raise _over()
            yield

    def _opened(self) -> BinaryIO | None:
        try:
            return open(self.path, "rb")
        except PermissionError:
            return None
        except FileNotFoundError:
            if self.seen_from == _here():
                raise _over() from None
            return None

    def _is(self, file: BinaryIO) -> bool:
        """Whether the file is still the gate: it may be closed, and open again for another attempt."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False


def _over() -> BadEndpoint:
    return BadEndpoint("a task came when its run was over")

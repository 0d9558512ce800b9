"""Tasks that write, and a driver that has to know when the last of them has ended.

Spark says that a task has ended when it has told it to: its Python process may write on. So every task holds a shared
lock while it writes, which the kernel ends with the process, and the driver waits for a lock of its own.
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
    """A file in the directory of a run; pickled to the tasks. Who does not share it, or may not read it, has no gate.

    `seen_from` is where the driver sees its files: a task that sees the same ones and not this knows that it is gone.
    """

    path: str
    seen_from: tuple[str, str] = field(default_factory=_here)

    def open(self) -> None:
        with open(self.path, "ab"):
            pass

    def close(self) -> None:
        """Wait until nobody is inside. Who comes later finds it closed."""
        with suppress(FileNotFoundError), open(self.path, "r+b") as file:  # NFS locks what can be written
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            os.remove(self.path)

    @contextmanager
    def passed(self) -> Iterator[None]:
        """For tasks, around all that they write."""
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

"""Wait for SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import socket
from typing import Any

_STOPPING = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """SIGTERM and SIGINT, from `with` on: they no longer end the process, but whoever waits for them.

    The kernel gives a signal to any thread, and Python runs handlers in the main thread, which hears nothing while it
    waits for a lock. So it waits for a socket, into which Python's own handler writes, in whatever thread that is.
    """

    def __enter__(self) -> Stopping:
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)
        self._handlers: dict[int, Any] = {number: signal.signal(number, lambda *_: None) for number in _STOPPING}
        self._descriptor = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        return self

    def wait(self) -> None:
        """Until one of them has come, also if that was before."""
        while not set(_STOPPING) & set(self._reading.recv(4096)):
            pass

    def __exit__(self, *failed: object) -> None:
        signal.set_wakeup_fd(self._descriptor)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._reading.close()
        self._writing.close()

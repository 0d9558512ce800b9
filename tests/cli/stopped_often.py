"""Starts `penstock log serve` again and again, asks it over HTTP from several threads, and stops it meanwhile.

Prints how it ended, one line each: the seconds until it has heard the signal, and the exit status. Children are
forked, so that each of them need not import everything.
"""

from __future__ import annotations

import http.client
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from penstock.cli.main import main
from penstock.log import server as _server  # noqa: F401  (imported once, for all children)

_PATIENCE = 15.0
_CLIENTS = 6


def serve(directory: Path, out: int) -> None:
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.argv = ["penstock", "log", "serve", str(directory), "--create", "orders", "--port", "0", "--http-port", "0",
                "--push-port", "-1", "--pull-port", "-1"]  # fmt: skip
    main()


def ask(port: int, answered: threading.Semaphore) -> None:
    """Until nobody answers any more."""
    with suppress(ConnectionRefusedError):
        while True:
            connection = http.client.HTTPConnection("localhost", port, timeout=5)
            connection.connect()
            with suppress(ConnectionResetError, BrokenPipeError, http.client.HTTPException):
                for _ in range(50):
                    connection.request("GET", "/statistics")
                    connection.getresponse().read()
                    answered.release()


def once(directory: Path) -> tuple[float, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        serve(directory, writing)
    os.close(writing)
    with os.fdopen(reading) as said:
        for line in said:
            if line.split()[0] == "http":
                break
        answered = threading.Semaphore(0)
        about = int(line.rpartition(":")[2]), answered
        asking = [threading.Thread(target=ask, args=about, daemon=True) for _ in range(_CLIENTS)]
        for each in asking:
            each.start()
        for _ in range(5 * _CLIENTS):
            answered.acquire(timeout=_PATIENCE)
        deaf = threading.Timer(_PATIENCE, os.kill, (child, signal.SIGKILL))
        deaf.start()
        began = time.monotonic()
        os.kill(child, signal.SIGTERM)
        heard = said.readline()
        seconds = time.monotonic() - began
        rest = said.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        deaf.cancel()
        for each in asking:
            each.join(_PATIENCE)
    if not status:
        assert heard.startswith("stopping: "), heard
        assert rest == "stopped: everything is fsynced\n", rest
    return seconds, status


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        print(*once(Path(sys.argv[1]) / str(number)), flush=True)

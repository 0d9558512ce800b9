"""Server processes: started on loopback, waited for, and ended whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import BadMachine

HOST = "127.0.0.1"
_START_SECONDS, _STOP_SECONDS, _POLL_SECONDS = 120.0, 15.0, 0.02
_WORDS = 300


def free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], directory: Path, port: int | None, environment: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """Run a server until the block ends; it begins when the port answers. Yields the file of what it says.

    It has a session of its own, so that Ctrl-C reaches this process alone, which then ends it in order.
    """
    directory.mkdir(parents=True, exist_ok=True)
    said = directory / f"{Path(command[0]).name}.log"
    with open(said, "wb") as log:
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=os.environ | dict(environment or {}), start_new_session=True,
        )  # fmt: skip
    try:
        if port is not None:
            wait_until(lambda: answers(port), process, said)
        yield said
    finally:
        _end(process)


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False


def wait_until(is_ready: object, process: subprocess.Popen[bytes] | None, said: Path) -> None:
    assert callable(is_ready)
    deadline = time.monotonic() + _START_SECONDS
    while not is_ready():
        words = said.read_text(errors="replace").strip()[-_WORDS:] or "it says nothing"
        if process is not None and process.poll() is not None:
            raise BadMachine(f"a server ended while it started: {words}", None, f"see {said}")
        if time.monotonic() > deadline:
            raise BadMachine(f"a server did not start within {_START_SECONDS:.0f} s: {words}", None, f"see {said}")
        time.sleep(_POLL_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The server and whatever it started itself."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

"""A log and a server on free ports of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.log.log import Log
from penstock.log.server.listening import Listening
from penstock.log.server.serve import Server


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log") as made:
        made.create("orders", 2)
        yield made


@pytest.fixture
def serving(log: Log) -> Iterator[Callable[..., Server]]:
    """Servers of that log, with whatever settings."""
    made: list[Server] = []

    def serve(**settings: Any) -> Server:
        ports = {"tcp": 0, "http": 0, "push": 0, "pull": 0}
        made.append(Server(log, Listening(**(ports | settings))).start())
        return made[-1]

    yield serve
    for server in made:
        server.stop()


@pytest.fixture
def server(serving: Callable[..., Server]) -> Server:
    return serving()

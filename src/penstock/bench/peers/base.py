"""What a peer is: a system that runs the workloads in a process of its own.

The process is given a file with a job, or with a list of them, and answers in lines of JSON; see `process`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

USERS, BATCH, SIZE = "users", "batch", "size"
Say = Callable[[str], None]


class Peer(Protocol):
    """A system under test.

    `one_by_one` says that it handles message by message, with no fixed cost per batch; `factors` are the scale factors
    that mean something to it.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def one_by_one(self) -> bool: ...

    @property
    def factors(self) -> frozenset[str]: ...

    def availability(self) -> str | None:
        """Why it cannot run here; None if it can. Looks only, and at once."""
        ...

    def prepare(self, say: Say) -> str | None:
        """Build what has to be built, once; why that failed, or None."""
        ...

    def command(self, arguments: Path) -> list[str]: ...

    def environment(self, cores: int) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class PythonPeer:
    """A module of this package: `python -m penstock.bench.peers.<script> arguments.json`."""

    name: str
    title: str
    script: str
    package: str
    one_by_one: bool = False
    factors: frozenset[str] = frozenset({SIZE})

    @property
    def module(self) -> str:
        return f"penstock.bench.peers.{self.script}"

    def availability(self) -> str | None:
        if importlib.util.find_spec(self.module) is None:
            return f"there is no module {self.module}"
        if importlib.util.find_spec(self.package) is None:
            return f'{self.package} is not installed: pip install "penstock[bench]"'
        return None

    def prepare(self, say: Say) -> str | None:
        return None

    def command(self, arguments: Path) -> list[str]:
        return [sys.executable, "-m", self.module, str(arguments)]

    def environment(self, cores: int) -> dict[str, str]:
        return {"OMP_NUM_THREADS": str(cores), "POLARS_MAX_THREADS": str(cores), "PYTHONUNBUFFERED": "1"}


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Processes started inside run on the first `count` cores that this one may use; only Linux can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

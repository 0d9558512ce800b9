"""penstock cluster: a Spark master and workers on this machine."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import say
from penstock.errors import counted

if TYPE_CHECKING:
    from penstock.spark.cluster import Cluster


class Action(StrEnum):
    START = "start"
    STOP = "stop"
    STATUS = "status"
    ADDRESS = "address"


def cluster(
    action: Annotated[Action, typer.Argument(help="What to do; address prints nothing but that of the master.")],
    directory: Annotated[
        Path | None, typer.Option(help="Where pid files, logs and work are; otherwise in the cache directory.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Start: how many workers.")] = 2,
    cores: Annotated[int, typer.Option(min=1, help="Start: the cores of each worker.")] = 1,
    memory: Annotated[str, typer.Option(help="Start: the memory of each worker for Java.")] = "1g",
    port: Annotated[
        int | None, typer.Option(min=1024, max=65535, help="Start: the master's port; otherwise 7077 if it is free.")
    ] = None,
) -> None:
    """Start, stop or look at a Spark master with workers, as processes of this machine that only it can reach."""
    from penstock.cache import cache_directory
    from penstock.cli.progress import Progress
    from penstock.spark import cluster as processes

    place = (directory or cache_directory() / "cluster").absolute()
    if action is Action.START:
        with _ended_by_sigterm(), Progress("starting a master and its workers"):
            started = processes.start(place, workers, cores, memory, port)
        _describe(started)
        return
    if action is Action.STOP:
        with Progress("stopping"):
            ended = processes.stop(place)
        say(f"stopped {ended} processes" if ended else "no cluster runs here")
        return
    found = processes.status(place)
    if found is None:
        say("no cluster runs here")
        raise typer.Exit(1)
    if action is Action.ADDRESS:
        say(found.master)
    else:
        _describe(found)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that what it began is undone."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _describe(found: Cluster) -> None:
    say(f"master   {found.master}")
    for worker in found.workers:
        say(f"worker   {counted(worker.cores, 'core')}, {worker.megabytes} MB" if worker.alive else "worker   lost")
    say(f"page     {found.web}")
    say(f"logs     {found.directory}")

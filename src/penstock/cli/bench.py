"""penstock bench: EIPBench on Penstock and on other systems."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import say
from penstock.cli.progress import Progress

if TYPE_CHECKING:
    from penstock.bench.rundirectory import Run
    from penstock.bench.schedule import Settings

DIRECTORY = "build/bench"
commands = typer.Typer(help="Measure Penstock beside other systems with EIPBench.", no_args_is_help=True)

Directory = Annotated[Path, typer.Option(help="Where messages, runs and reports are kept.")]
Quick = Annotated[bool, typer.Option("--quick", help="All of it in less than five minutes, with few messages.")]
Workloads = Annotated[str | None, typer.Option(help="Only these, like RT-1-A,MDS-1-*")]
Peers = Annotated[str | None, typer.Option(help="Only on these systems, like penstock,camel")]
Users = Annotated[str | None, typer.Option(help="Concurrent users 2^omega: omega, like 0..6")]
Batch = Annotated[str | None, typer.Option(help="Messages in a batch 2^beta: beta, like 0..20")]
Size = Annotated[str | None, typer.Option(help="Size of messages: eta, like 1..20")]
Cores = Annotated[str | None, typer.Option(help="Numbers of cores, like 1,2")]
Spellings = Annotated[
    str | None, typer.Option("--json", help="How messages are written: spaced, as json.dumps does, compact, or both.")
]


@commands.command("list")
def list_benchmarks() -> None:
    """List the workloads, and the systems with the reason why one cannot run here."""
    from penstock.bench.peers import PEERS
    from penstock.bench.workload import WORKLOADS

    width = max(map(len, WORKLOADS))
    for workload in WORKLOADS.values():
        say(f"{workload.name:<{width}}  {workload.family:<14}  {workload.title}")
    say("")
    for peer in PEERS.values():
        reason = peer.availability()
        say(f"{peer.name:<{width}}  {peer.title}" + (f": cannot run here: {reason}" if reason else ""))


@commands.command()
def data(
    quick: Quick = False, workloads: Workloads = None, peers: Peers = None, users: Users = None, batch: Batch = None,
    size: Size = None, json: Spellings = None,
    messages: Annotated[int | None, typer.Option(min=1, help="How many orders.")] = None,
    directory: Directory = Path(DIRECTORY),
) -> None:  # fmt: skip
    """Make all messages that a run with the same options needs; `run` makes what is not there."""
    from penstock.bench.harness import amounts
    from penstock.bench.inputs import Messages
    from penstock.bench.peers import PEERS

    settings = _settings(quick, workloads, peers, users, batch, size, None, json, messages=messages)
    source = Messages(directory)
    for wanted in amounts(settings, [PEERS[name] for name in settings.peers]):
        made = source.files(wanted)
        say(f"{wanted.model:<20} {made.messages:>12,} messages {made.bytes / 1e6:>10,.1f} MB")


@commands.command()
def run(
    quick: Quick = False,
    workloads: Workloads = None,
    peers: Peers = None,
    users: Users = None,
    batch: Batch = None,
    size: Size = None,
    cores: Cores = None,
    json: Spellings = None,
    forks: Annotated[int | None, typer.Option(min=1, help="Fresh processes for every number.")] = None,
    warmup: Annotated[int | None, typer.Option(min=0, help="Iterations that do not count.")] = None,
    warmup_seconds: Annotated[
        float | None, typer.Option(min=0, help="Seconds that the warm-up takes at least; 0 where --warmup is given.")
    ] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Iterations that count, in every fork.")] = None,
    messages: Annotated[int | None, typer.Option(min=1, help="How many orders.")] = None,
    limit: Annotated[float | None, typer.Option(min=1, help="Seconds after which a fork is given up.")] = None,
    directory: Directory = Path(DIRECTORY),
    resume: Annotated[str | None, typer.Option(help="Go on with this run, with its settings.")] = None,
) -> None:
    """Check all answers, measure, and write the report; Ctrl-C stops, and the run can go on later."""
    from penstock.bench.rundirectory import create, reopen

    if resume is None:
        if warmup is not None and warmup_seconds is None:
            warmup_seconds = 0.0
        counts = {"forks": forks, "warmup": warmup, "warmup_seconds": warmup_seconds, "iterations": iterations,
                  "messages": messages, "limit": limit}  # fmt: skip
        opened = create(directory, _settings(quick, workloads, peers, users, batch, size, cores, json, **counts))
    else:
        given = (quick, workloads, peers, users, batch, size, cores, json, forks, warmup, warmup_seconds,
                 iterations, messages, limit)  # fmt: skip
        if any(option not in (None, False) for option in given):
            raise typer.BadParameter("--resume takes the settings of its run: leave out all others but --directory")
        opened = reopen(directory, resume)
    with _resumable(opened):
        _measure(opened)
    _report(opened)


@commands.command()
def report(
    run: Annotated[str | None, typer.Argument(help="The name of a run; without it the last one.")] = None,
    directory: Directory = Path(DIRECTORY),
) -> None:
    """Write the report of a run: tables, figures, targets."""
    from penstock.bench.rundirectory import open_run

    _report(open_run(directory, run))


def _settings(
    quick: bool, workloads: str | None, peers: str | None, users: str | None, batch: str | None, size: str | None,
    cores: str | None, spellings: str | None, **counts: float | None,
) -> Settings:  # fmt: skip
    """What was asked for; a run of chosen workloads has only the scale factors that are asked for, too."""
    from penstock.bench import choice, machine, schedule
    from penstock.bench.peers import PEERS
    from penstock.bench.spelling import SPELLINGS
    from penstock.bench.workload import WORKLOADS

    usual = schedule.QUICK if quick else schedule.FULL
    ranges = {
        "users": choice.numbers(users, "--users", 0, 11),
        "batch": choice.numbers(batch, "--batch", 0, 20),
        "size": choice.numbers(size, "--size", 1, 20),
    }
    changes: dict[str, Any] = {name: value for name, value in counts.items() if value is not None}
    if workloads or any(value is not None for value in ranges.values()):
        changes.update({name: value or () for name, value in ranges.items()})
    return replace(
        usual,
        workloads=choice.names(workloads, WORKLOADS, "workload") or schedule.default_workloads(quick),
        peers=choice.names(peers, PEERS, "peer") or tuple(PEERS),
        cores=choice.numbers(cores, "--cores", 1, machine.cores()) or (min(2, machine.cores()),),
        spellings=choice.names(spellings, SPELLINGS, "spelling of JSON") or usual.spellings,
        swept=workloads is not None,
        **changes,
    )


def _measure(opened: Run) -> None:
    from penstock.bench.harness import measure
    from penstock.bench.inputs import Messages
    from penstock.bench.peers import PEERS
    from penstock.bench.watch import Watch
    from penstock.cli.bench_progress import BenchProgress

    say(f"run {opened.name} in {opened.path}")
    with BenchProgress() as progress:
        measure(opened, PEERS, Messages(opened.directory), Watch(progress.note, progress.show))


@contextmanager
def _resumable(opened: Run) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run; the processes of peers with it."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        say(f"what is measured is stored; go on with: penstock bench run --resume {opened.name}{_where(opened)}")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _where(opened: Run) -> str:
    return "" if opened.directory == Path(DIRECTORY) else f" --directory {opened.directory}"


def _report(opened: Run) -> None:
    from penstock.bench.report import write_report

    with Progress("writing the report"):
        written = write_report(opened)
    for target in written.targets:
        say(f"{target.status:<7}  {target.text}: {target.found}")
    if opened.settings.quick:
        say("a quick run has few messages and hardly a warm-up: all works, but its numbers say little")
    say(f"report: {written.path}")

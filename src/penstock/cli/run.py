"""penstock run: an app on Spark, as a batch or as a stream."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import complain, say, write
from penstock.cli.progress import Progress
from penstock.metrics import Export
from penstock.summary import Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.plan.plan import Plan
    from penstock.route.app import App


def run(
    app: Annotated[str, typer.Argument(help="app.py, app.py:name, module:name or routes.yaml")],
    stream: Annotated[bool, typer.Option("--stream", help="Keep running, in micro-batches.")] = False,
    checkpoint: Annotated[
        str | None, typer.Option(help="Stream: the directory that holds how far it has come.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stream: end when what is there now is done.")] = False,
    trigger: Annotated[str | None, typer.Option(help='Stream: how often, like "1 second".')] = None,
    max_batch: Annotated[
        int | None, typer.Option(help="Stream: the most messages of a batch, from sources that count them.", min=1)
    ] = None,
    max_bytes: Annotated[str | None, typer.Option(help="Stream: about the most of files in a batch, like 9MB.")] = None,
    buckets: Annotated[
        int | None, typer.Option(help="Stream: tasks for each step that remembers, from the first batch on.", min=1)
    ] = None,
    summary: Annotated[str | None, typer.Option(help="Write the numbers to this JSON file.")] = None,
    steps: Annotated[bool, typer.Option("--steps", help="Also print the numbers of every step.")] = False,
    metrics: Annotated[
        list[str] | None, typer.Option(help="Write the numbers to this .json or .prom file after every batch.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Stream: show them to Prometheus at this port of this machine.", min=0, max=65535)
    ] = None,
    diagram: Annotated[str | None, typer.Option(help="Draw the app with the numbers to this SVG file.")] = None,
    master: Annotated[str | None, typer.Option(help="The Spark master, like spark://host:7077.")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="A setting of Spark, like spark.cores.max=4.")] = None,
) -> None:
    """Run an app over what its sources hold, or as a stream; Ctrl-C ends a stream cleanly."""
    from penstock.route.load import load

    loaded = load(app)
    plan = loaded.plan
    for option, given in (
        ("--checkpoint", checkpoint), ("--once", once), ("--trigger", trigger), ("--metrics-port", metrics_port),
        ("--max-batch", max_batch), ("--max-bytes", max_bytes), ("--buckets", buckets),
    ):  # fmt: skip
        if given not in (None, False) and not stream:
            raise typer.BadParameter(f"{option} is for streams: add --stream")
    settings, limits = _settings(conf or []), _limits(max_batch, max_bytes, buckets)
    if checkpoint is not None:
        from penstock.spark.checkpoint import refuse_if_owned

        refuse_if_owned(checkpoint)
    with Export(metrics or (), metrics_port) as export, Progress("starting Spark") as progress:
        from penstock.spark.session import session

        watch = Watch(loaded.name, progress, export)
        spark = session(loaded.name, master, settings)
        if stream:
            result = _stream(loaded, spark, checkpoint, once, trigger, limits, watch)
        else:
            result = _batch(loaded, spark, watch)
        export.update(result)
    _report(plan, result, summary, diagram, steps)


class Watch:
    """Everyone who wants to know how far a run has come."""

    def __init__(self, app: str, progress: Progress, export: Export) -> None:
        self.progress, self.export = progress, export
        export.update(Summary(app))

    def show(self, summary: Summary) -> None:
        self.progress.show(summary)
        self.export.update(summary)


def _settings(conf: list[str]) -> dict[str, str]:
    for setting in conf:
        if not setting.startswith("spark.") or "=" not in setting:
            raise typer.BadParameter(f"--conf {setting}: write --conf spark.NAME=VALUE")
    return dict(setting.split("=", 1) for setting in conf)


def _limits(max_batch: int | None, max_bytes: str | None, buckets: int | None) -> dict[str, int]:
    """How much a micro-batch may have, and in how many tasks it is remembered, where it is not the usual."""
    given = {"rows_per_batch": max_batch, "buckets": buckets}
    limits = {name: number for name, number in given.items() if number is not None}
    if max_bytes is not None:
        found = re.fullmatch(r"([1-9][0-9]*) ?(KB|MB|GB)", max_bytes.upper())
        if found is None:
            raise typer.BadParameter(f"--max-bytes {max_bytes}: write a number of KB, MB or GB, like 9MB")
        limits["bytes_per_batch"] = int(found[1]) * 1024 ** ("KB", "MB", "GB").index(found[2]) * 1024
    return limits


def _batch(app: App, spark: SparkSession, watch: Watch) -> Summary:
    from penstock.spark.run import run_batch

    watch.progress.say("running")
    return run_batch(app, spark, watch.show).summary


def _stream(
    app: App,
    spark: SparkSession,
    checkpoint: str | None,
    once: bool,
    trigger: str | None,
    limits: dict[str, int],
    watch: Watch,
) -> Summary:
    from penstock.spark.stream import run_stream

    address = f"; numbers at {watch.export.address}" if watch.export.address else ""
    watch.progress.say(f"waiting for messages{address}; Ctrl-C stops")
    with _stop_at_interrupt(watch.progress) as stop:
        return run_stream(app, checkpoint, once, trigger, spark, watch.show, stop, on_change=say, **limits).summary


@contextmanager
def _stop_at_interrupt(progress: Progress) -> Iterator[threading.Event]:
    """The first Ctrl-C or SIGTERM asks the stream to end; the second one does not wait for it."""
    stop = threading.Event()

    def interrupted(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        progress.say("stopping; Ctrl-C again does not wait")

    before = {number: signal.signal(number, interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(plan: Plan, result: Summary, summary: str | None, diagram: str | None, steps: bool) -> None:
    from penstock.summary import steps_text, text

    say(text(result))
    if steps:
        say(steps_text(result))
    if summary:
        write(summary, json.dumps(result.as_dict(), indent=2) + "\n")
    if diagram:
        from penstock.plan.svg import svg

        write(diagram, svg(plan, result.as_dict()))
    if not result.conserved:
        complain("the numbers do not add up: please report this as a bug of Penstock, with the summary")
        raise typer.Exit(1)

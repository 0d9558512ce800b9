"""The demonstration: one app over generated messages, in batch and as a stream, with everything it leaves behind."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from penstock.demo import cars
from penstock.endpoints.log import Log
from penstock.errors import BadEndpoint
from penstock.formats import Json
from penstock.route.app import App
from penstock.summary import Summary

Say = Callable[[str], None]
Build = Callable[..., App]
TOPIC, PARTITIONS = "cars", 2

_MARK = ".penstock-demo"
_MADE = ("cars", "delivered", "dead-letters", "stream", "checkpoint", "log", "connected-cars.svg")


def demo(out: str, messages: int, say: Say) -> None:
    """Generate messages below `out`, run examples/connected_cars.py over them twice, and show what came of it."""
    if messages < 1:
        raise BadEndpoint(f"a demonstration of {messages} messages shows nothing", fix="ask for 1 or more")
    _make_room(out)
    module = example()
    build = cast(Build, module.build)
    data = os.path.join(out, "cars")
    started = time.monotonic()
    _generate(data, messages, say)
    app = build(data, out)
    source = Log(TOPIC, Json(module.SCHEMA), at=os.path.join(out, "log"))
    batch, stream = _run(app, build(data, os.path.join(out, "stream"), source), data, out, say)
    _compare(out, batch, stream, say)
    _draw(app, batch, os.path.join(out, "connected-cars.svg"))
    _show(out, say)
    _point(out, say, time.monotonic() - started)


def example_file() -> Path:
    """examples/connected_cars.py: a copy in the package when installed, the file beside `src` in a checkout."""
    package = Path(__file__).resolve().parent
    places = [package / "examples" / "connected_cars.py", package.parents[2] / "examples" / "connected_cars.py"]
    for place in places:
        if place.is_file():
            return place
    raise BadEndpoint("the example connected_cars.py is not where the demonstration looks for it",
                      fix=f"put it back to {places[-1]}, or install penstock again")  # fmt: skip


def example() -> Any:
    """The module examples/connected_cars.py."""
    spec = importlib.util.spec_from_file_location("connected_cars", example_file())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _make_room(out: str) -> None:
    """An empty directory, or one that an earlier demonstration filled; anybody else's files are left alone."""
    mark = os.path.join(out, _MARK)
    if os.path.isdir(out) and os.listdir(out) and not os.path.isfile(mark):
        raise BadEndpoint(f"{out} has files that are not the demonstration's", fix="name a new or empty directory")
    os.makedirs(out, exist_ok=True)
    Path(mark).touch()
    for name in _MADE:
        path = os.path.join(out, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)


def _generate(data: str, messages: int, say: Say) -> None:
    say(f"1. Cars send messages: error codes and telemetry of {cars.CARS:,} cars, a few of them broken.\n")
    started = time.monotonic()
    size = cars.write(data, messages)
    seconds = time.monotonic() - started
    say(f"   {messages:,} messages, {size / 1e6:,.1f} MB of JSON, made in {seconds:.1f} s: {data}\n")


def _run(app: App, again: App, data: str, out: str, say: Say) -> tuple[Summary, Summary]:
    from penstock.spark.run import run_batch
    from penstock.spark.session import session
    from penstock.spark.stream import run_stream

    say("   Spark starts.\n")
    spark = session(app.name)
    say("2. The routes run over all of them at once: error codes and moving cars get their owner's data and go to the")
    say("   insurer in its own format, standing cars are filtered, what cannot be delivered becomes a dead letter.\n")
    batch = run_batch(app, spark).summary
    say(_indented(str(batch)))
    say("\n3. The cars publish the same messages to a message log, and the same routes stream from it, in")
    say("   micro-batches with a checkpoint.\n")
    _publish(data, os.path.join(out, "log"), say)
    stream = run_stream(again, os.path.join(out, "checkpoint"), once=True, spark=spark).summary
    say(_indented(str(stream)))
    return batch, stream


def _publish(data: str, place: str, say: Say) -> None:
    """Push all messages to a server of the log in `place`, as cars would."""
    from penstock.log import Log as OpenLog
    from penstock.log.client import Producer
    from penstock.log.server import Listening, Server

    started, count = time.monotonic(), 0
    with OpenLog(Path(place)) as log:
        log.create(TOPIC, PARTITIONS)
        server = Server(log, Listening(tcp=0, http=None, push=None, pull=None)).start()
        try:
            with Producer(server.address) as producer:
                for number, file in enumerate(sorted(Path(data).glob("*.jsonl"))):
                    lines = file.read_bytes().splitlines()
                    producer.send_many(TOPIC, lines, partition=number % PARTITIONS)
                    count += len(lines)
        finally:
            server.stop()
    say(f"   {count:,} messages published and fsynced in {time.monotonic() - started:.1f} s: {place}\n")


def _compare(out: str, batch: Summary, stream: Summary, say: Say) -> None:
    """Raise if the two runs differ, in number or in what they delivered, or if either has lost a message."""
    for name, summary in (("batch", batch), ("stream", stream)):
        if not summary.conserved:
            raise RuntimeError(f"the {name} run lost {summary.missing:,} messages: this is a bug in Penstock")
    for what in ("received", "delivered", "filtered", "dead"):
        first, second = getattr(batch, what), getattr(stream, what)
        if first != second:
            raise RuntimeError(f"{what}: {first} in batch, {second} as a stream: this is a bug in Penstock")
    pairs = zip_longest(sorted(_lines(out, "delivered")), sorted(_lines(out, "stream", "delivered")))
    if any(first != second for first, second in pairs):
        raise RuntimeError("batch and stream delivered different messages: this is a bug in Penstock")
    say(f"\n4. Both delivered the same {sum(batch.delivered.values()):,} messages, byte for byte, and lost none.\n")


def _draw(app: App, summary: Summary, path: str) -> None:
    from penstock.plan.svg import svg

    Path(path).write_text(svg(app.plan, summary.as_dict()), encoding="utf-8")


def _show(out: str, say: Say) -> None:
    delivered = next(_lines(out, "delivered"), None)
    if delivered is not None:
        say("   One delivered message:\n")
        say(_indented(_pretty(json.loads(delivered))))
    dead = next(_lines(out, "dead-letters"), None)
    if dead is not None:
        letter = json.loads(dead)
        shown = {name: letter[name] for name in ("route", "step", "error", "reason", "id", "body")}
        say("\n   One dead letter, with the step that refused it and why:\n")
        say(_indented(_pretty(shown | {"body": _cut(letter["body"])})))


def _point(out: str, say: Say, seconds: float) -> None:
    places = {
        "connected-cars.svg": "the routes as a picture, with the counts of the batch: open it in a browser",
        "delivered": "what the insurer got from the batch, one message per line",
        os.path.join("stream", "delivered"): "what it got from the stream",
        "log": "the message log: penstock log check reads every byte of it",
        "dead-letters": "what could not be delivered, with the original message",
        os.path.join("cars", "owners.csv"): "the table that messages are enriched from",
    }
    width = max(len(name) for name in places) + len(out) + 1
    say(f"\n5. Done in {seconds:.0f} s. Where to look next:\n")
    for name, what in places.items():
        say(f"   {os.path.join(out, name):<{width}}  {what}")
    say(f"\n   The routes are a page of Python: {_short(example_file())}")


def _lines(*path: str) -> Iterator[bytes]:
    directory = os.path.join(*path)
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        with open(os.path.join(directory, name), "rb") as file:
            yield from file


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:120]}..."

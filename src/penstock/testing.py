"""Test an app on lists: through the reference in milliseconds, through the kernel without Java, or on Spark.

from penstock.testing import run

result = run(app, [{"total": 50}, {"total": 500}])
assert result.bodies("cheap") == [{"total": 50}]
assert not result.dead
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.endpoints.base import Source
from penstock.endpoints.memory import Memory
from penstock.errors import BadRoute, UnknownChannel, did_you_mean
from penstock.message import DeadLetter, Message
from penstock.plan.build import build
from penstock.reference import run as reference
from penstock.reference.resume import STEP
from penstock.route.app import App
from penstock.summary import Summary

REFERENCE, KERNEL, SPARK, STREAM = "reference", "kernel", "spark", "stream"


@dataclass(frozen=True)
class Result:
    """Where every message ended. Channels that end in a sink are there, be they empty or not."""

    channels: Mapping[str, list[Message]]
    dead: list[DeadLetter]
    summary: Summary

    @property
    def filtered(self) -> Mapping[str, int]:
        """How many messages each step filtered, by "route.step"."""
        return self.summary.filtered

    def messages(self, channel: str) -> list[Message]:
        """What arrived in a channel, in the order of ids."""
        if channel not in self.channels:
            raise UnknownChannel(f"no sink is bound to channel {channel!r}", fix=did_you_mean(channel, self.channels))
        return sorted(self.channels[channel], key=lambda message: _order(message.id))

    def bodies(self, channel: str) -> list[Any]:
        """The bodies that arrived in a channel: JSON as Python values, anything else as text."""
        return [_value(message.raw) for message in self.messages(channel)]


def run(
    app: App,
    messages: Iterable[object] | Mapping[str, Iterable[object]],
    engine: str = REFERENCE,
    partitions: int = 1,
    rows_per_batch: int = 100_000,
    batches: Sequence[int] | None = None,
    clock: Sequence[float] | None = None,
    stop: bool = True,
) -> Result:
    """Run an app on messages given as dicts, text or bytes, with lists in place of its sources and sinks.

    With several sources, `messages` maps the name of each source's route to its messages. `batches` has the number of
    messages of each batch and `clock` its time in seconds; without `stop`, what waits at the end stays where it is.
    """
    given = _by_route(app, messages)
    tested = on_lists(app, given, partitions)
    if engine == REFERENCE:
        outcome = reference.run_batches(tested.plan, _batches(given, batches, clock), stop)
        return Result(outcome.channels, outcome.dead, outcome.summary(app.name))
    if engine == KERNEL:
        from penstock.kernel.run import run as run_kernel

        return Result(*run_kernel(tested.plan, _batches(given, batches, clock), stop))
    if batches is not None or clock is not None or not stop:
        raise BadRoute("batches, clock and stop are for the reference", fix="use rows_per_batch on Spark")
    if engine == SPARK:
        from penstock.spark.run import run_batch

        result = run_batch(tested)
    elif engine == STREAM:
        from penstock.spark.stream import run_stream

        result = run_stream(tested, once=True, rows_per_batch=rows_per_batch)
    else:
        raise BadRoute(f"there is no engine {engine!r}", fix=did_you_mean(engine, (REFERENCE, KERNEL, SPARK, STREAM)))
    return Result(result.channels, result.dead, result.summary)


def replay(
    app: App, letters: Iterable[DeadLetter], engine: str = REFERENCE, at: str = STEP, source: str | None = None
) -> Result:
    """Send dead letters of a result through an app again, at the step that failed or from the start.

    The app may be another than the one they died in: the same, mended.
    """
    tested = on_lists(app, {})
    if engine == REFERENCE:
        outcome = reference.replay(build(tested), letters, at, source)
        return Result(outcome.channels, outcome.dead, outcome.summary(app.name))
    if engine != SPARK:
        raise BadRoute(f"there is no engine {engine!r} for replays", fix=did_you_mean(engine, (REFERENCE, SPARK)))
    from penstock.spark.replay import replay as replay_on_spark

    result = replay_on_spark(tested, letters, at, source)
    return Result(result.channels, result.dead, result.summary)


def _batches(
    given: Mapping[str, list[object]], sizes: Sequence[int] | None, clock: Sequence[float] | None
) -> list[tuple[float, Mapping[str, Sequence[object]]]]:
    pieces = [given] if sizes is None else reference.cut(given, sizes)
    times = list(clock) if clock is not None else [0.0] * len(pieces)
    if len(times) != len(pieces) or times != sorted(times):
        raise BadRoute(f"clock={times!r} does not fit {len(pieces)} batches", fix="give one time per batch, rising")
    return list(zip(times, pieces, strict=True))


def on_lists(app: App, messages: Mapping[str, Iterable[object]], partitions: int = 1) -> App:
    """The same app with lists at its ends, which promise nothing; sinks keep the format they write."""
    unpromised = [replace(route, delivery=None) for route in app.routes]
    routes = [
        replace(route, source=Memory(tuple(messages.get(route.name, ())), route.source.body_format, partitions))
        if isinstance(route.source, Source)
        else route
        for route in unpromised
    ]
    bare = [replace(route, steps=tuple(_without_sink(step) for step in route.steps)) for route in routes]
    kept = {channel: Memory(format=getattr(sink, "format", None)) for channel, sink in app.sinks.items()}
    return App(app.name, *bare, sinks=kept, dead_letters=Memory(), error_budget=app.error_budget)


def _without_sink(step: Any) -> Any:
    return replace(step, sink=None) if getattr(step, "sink", None) is not None else step


def _by_route(app: App, messages: Iterable[object] | Mapping[str, Iterable[object]]) -> dict[str, list[object]]:
    sources = [route.name for route in app.routes if isinstance(route.source, Source)]
    if isinstance(messages, Mapping):
        for name in messages:
            if name not in sources:
                raise UnknownChannel(f"no route named {name!r} has a source", fix=did_you_mean(name, sources))
        return {name: list(values) for name, values in messages.items()}
    if len(sources) != 1:
        raise BadRoute(f"app {app.name!r} has {len(sources)} sources: {', '.join(sources)}",
                       fix="give the messages of each as {route: [...]}")  # fmt: skip
    return {sources[0]: list(messages)}


def _order(identity: str) -> list[tuple[bool, int, str]]:
    parts = identity.replace(".", "/").replace("+", "/").split("/")
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")

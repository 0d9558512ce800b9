"""Spark must do what the reference does, on random routes and random messages, in batch and as a stream."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import HealthCheck, Phase, given, note, settings
from pyspark.sql import SparkSession

from penstock import App
from penstock.message import DeadLetter, Message
from penstock.testing import REFERENCE, SPARK, STREAM, Result, run
from tests.agreement.strategies import MESSAGES, apps, deciding_apps

# Shrinking would run Spark hundreds of times; the note says which route and messages failed.
SLOW = settings(
    max_examples=4,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def value(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def same(left: Any, right: Any) -> bool:
    """Equal, with the last digit of a double left to the engine's own arithmetic."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=1e-15)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and type(left) is type(right)


def seen(message: Message) -> tuple[str, Any, Any]:
    return (message.id, value(message.raw), message.lineage)


def buried(letter: DeadLetter) -> tuple[str, ...]:
    return (letter.message.id, repr(letter.message.raw), letter.route, letter.step, letter.error, letter.reason)


def assert_same(expected: Result, found: Result) -> None:
    assert found.summary.conserved
    assert expected.summary.conserved
    assert found.channels.keys() == expected.channels.keys()
    for channel in expected.channels:
        left = [seen(message) for message in expected.messages(channel)]
        right = [seen(message) for message in found.messages(channel)]
        assert len(left) == len(right), (channel, left, right)
        for one, other in zip(left, right, strict=True):
            assert one[0] == other[0], (channel, one, other)
            assert same(one[1], other[1]), (channel, one, other)
            assert one[2] == other[2], (channel, one, other)
    assert sorted(map(buried, expected.dead)) == sorted(map(buried, found.dead))
    assert dict(expected.filtered) == dict(found.filtered)
    assert expected.summary.copied == found.summary.copied
    assert expected.summary.steps == found.summary.steps


def describe(app: App, messages: list[Any]) -> None:
    note("\n".join(f"{stage.title}: {stage.node.detail()}" for stage in app.plan.stages()))
    note(repr(messages))


@SLOW
@given(apps(), MESSAGES)
def test_spark_does_what_the_reference_does(spark: SparkSession, app: App, messages: list[bytes]) -> None:
    describe(app, messages)
    assert_same(run(app, messages, REFERENCE), run(app, messages, SPARK))


@SLOW
@given(deciding_apps(), MESSAGES)
def test_spark_decides_as_the_reference_does(spark: SparkSession, app: App, messages: list[bytes]) -> None:
    describe(app, messages)
    assert_same(run(app, messages, REFERENCE), run(app, messages, SPARK))


@settings(SLOW, max_examples=3)
@given(apps() | deciding_apps(), MESSAGES)
def test_a_stream_does_what_the_reference_does(spark: SparkSession, app: App, messages: list[bytes]) -> None:
    describe(app, messages)
    assert_same(run(app, messages, REFERENCE), run(app, messages, STREAM, rows_per_batch=5))


@settings(SLOW, max_examples=100)
@given(apps(), MESSAGES)
def test_the_reference_conserves_messages(app: App, messages: list[bytes]) -> None:
    summary = run(app, messages, REFERENCE).summary
    assert summary.conserved
    assert all(step.conserved for step in summary.steps.values())

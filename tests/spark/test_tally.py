"""The numbers of every step: on Spark as in the reference, in batch and as a stream, and adding up at each of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock import App, Frame, Json, Memory, Route, body, collect, fold, function, join, sum_of
from penstock.kernel.times import Times
from penstock.plan.plan import Plan
from penstock.reference.run import run_batches
from penstock.spark import run as running
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from penstock.summary import Latency, Step, Summary
from penstock.testing import on_lists

ORDER = Json("id BIGINT, who STRING, lines ARRAY<STRUCT<sku: STRING, n: BIGINT>>")
LINES: list[object] = [
    {"id": 1, "who": "ann", "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}, {"sku": "a", "n": 3}]},
    {"id": 2, "who": "bob", "lines": [{"sku": "a", "n": 4}]},
    {"id": 3, "who": "bob", "lines": []},
    {"id": 4, "lines": [{"sku": "c", "n": 5}, {"n": 6}]},
    {"id": "four"},
    {"id": 2, "who": "cid", "lines": [{"sku": "c", "n": 7}, {"sku": "d", "n": 0}]},
]


def source() -> Memory:
    return Memory((), ORDER)


def app(*routes: Route, **sinks: Memory) -> App:
    return App("counted", *routes, sinks=sinks, dead_letters=Memory())


def plain() -> App:
    """Nothing that remembers."""
    return app(
        Route("in", source()).filter(body.id != 3).tap("seen").choice({"a": body.who == "ann"}, "b"),
        Route("a", "a").split(body.lines).to("x"),
        seen=Memory(), b=Memory(), x=Memory(),
    )  # fmt: skip


def copying() -> App:
    """Everything that copies, before everything that remembers."""
    return app(
        Route("in", source()).tap("seen").split(body.lines).idempotent(body.sku).multicast("left", "right"),
        Route("left", "left").aggregate(fold(total=sum_of(body.n)), by=body.sku, size=1).to("sums"),
        Route("right", "right").filter(body.n > 1, discard="small").resequence(body.n, window=2, first=1).to("sorted"),
        seen=Memory(), small=Memory(), sums=Memory(), sorted=Memory(),
    )  # fmt: skip


def joining() -> App:
    """Branches that meet again, and recipients that nobody knows."""
    return app(
        Route("in", source()).filter(body.id != 3).choice({"a": body.who == "ann", "b": body.who == "bob"}, "c"),
        Route("a", "a").translate({"who": body.who, "id": body.id}).to("d"),
        Route("b", "b").enrich({"note": "b"}).to("e"),
        Route("c", "c").recipients(body.who, known=["x"]),
        Route("all", join("d", "e")).aggregate(collect("ids", of="id"), by=body.who, size=2).to("y"),
        x=Memory(), y=Memory(),
    )  # fmt: skip


def grouping() -> App:
    """Groups that stay open, closed groups, and members without a key."""
    return app(
        Route("in", source())
        .aggregate(collect("ids", of="id"), by=body.who, size=2, invalid="filter", closed="dead", closed_for="1 hour")
        .to("x"),
        x=Memory(),
    )  # fmt: skip


APPS: dict[str, Callable[[], App]] = {"plain": plain, "copying": copying, "joining": joining, "grouping": grouping}


def expected(plan: Plan, messages: list[object], sizes: list[int], stream: bool) -> Summary:
    ends = list(accumulate(sizes))
    batches = [(float(end), messages[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    return run_batches(plan, batches, stream=stream).summary("counted")


def same(found: Summary, wanted: Summary) -> None:
    assert {name: step.as_dict() for name, step in found.steps.items()} == {
        name: step.as_dict() for name, step in wanted.steps.items()
    }
    assert found.conserved
    assert all(step.conserved for step in found.steps.values())
    first = [step for name, step in found.steps.items() if name.endswith(".decode")]
    assert sum(step.received for step in first) == found.received
    assert sum(step.copied for step in found.steps.values()) == found.copied
    assert sum(step.dead for step in found.steps.values()) == found.dead
    assert sum(step.held for step in found.steps.values()) == found.held == sum(found.waiting.values())


@pytest.mark.parametrize("name", APPS)
def test_a_batch_counts_like_the_reference(name: str, spark: SparkSession) -> None:
    tested = on_lists(APPS[name](), {"in": LINES}, partitions=2)
    same(run_batch(tested, spark).summary, expected(tested.plan, LINES, [len(LINES)], stream=False))


@pytest.mark.parametrize("name", APPS)
def test_a_stream_counts_like_the_reference(name: str, spark: SparkSession) -> None:
    tested = on_lists(APPS[name](), {"in": LINES})
    found = run_stream(tested, once=True, spark=spark, rows_per_batch=2).summary
    same(found, expected(tested.plan, LINES, [2, 2, 2], stream=True))
    assert found.batches == 3
    assert {title: latency.messages for title, latency in found.step_latency.items()} == {
        title: step.received for title, step in found.steps.items() if step.received
    }
    assert all(0 < latency.mean <= latency.longest for latency in found.step_latency.values())


def test_what_waits_stays_known_when_a_stream_starts_again(spark: SparkSession, tmp_path: Path) -> None:
    given: list[object] = [{"id": 1, "who": "ann"}, {"id": 2, "who": "bob"}]
    checkpoint = str(tmp_path / "checkpoint")
    first = run_stream(on_lists(grouping(), {"in": given}), checkpoint, once=True, spark=spark).summary
    assert first.waiting == {"in.aggregate": 2}
    more = on_lists(grouping(), {"in": [*given, {"id": 3, "who": "ann"}]})
    second = run_stream(more, checkpoint, once=True, spark=spark).summary
    assert second.steps["in.aggregate"] == Step(received=1, sent=1, held=-1, copied=-1)
    assert (second.waiting, second.held) == ({"in.aggregate": 1}, -1)


class Once:
    """Fails the first time that it sees a number, whatever the process; 9 fails always."""

    def __init__(self, home: Path) -> None:
        self.home = str(home)
        self.__module__, self.__qualname__ = __name__, "once"
        home.mkdir()

    def __call__(self, number: int) -> int:
        seen = Path(self.home, str(number))
        if number == 9 or not seen.exists():
            seen.touch()
            raise TimeoutError("later")
        return number


@pytest.mark.parametrize("message", ["current", "original"])
@pytest.mark.parametrize("deduplicated", [False, True])
def test_another_try_is_no_other_message(message: str, deduplicated: bool, spark: SparkSession, tmp_path: Path) -> None:
    given: list[object] = [{"id": number} for number in (1, 2, 2, 9)]

    def built(home: Path) -> App:
        route = Route("in", source())
        route = route.idempotent(body.id) if deduplicated else route.filter(body.id > 0)
        called = function(Once(home), body.id, returns="BIGINT")
        route = route.enrich({"id": called}).filter(body.id < 5)
        return app(route.on_error(attempts=2, delay="10 ms", message=message).to("x"), x=Memory())

    wanted = expected(on_lists(built(tmp_path / "a"), {"in": given}).plan, given, [4], stream=False)
    found = run_batch(on_lists(built(tmp_path / "b"), {"in": given}), spark).summary
    same(found, wanted)
    assert found.steps["in.enrich"].dead == 1
    if message == "current" and not deduplicated:
        assert found.steps["in.enrich"] == Step(received=4, sent=3, dead=1)


@pytest.fixture
def aged(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Frame:
    """A stream of two batches whose messages have an age when they are published."""
    now = 1_700_000_000.0
    monkeypatch.setattr(running, "time", SimpleNamespace(time=lambda: now))
    ages = [
        {'{"id": 1, "who": "ann"}': 10, '{"id": 2, "who": "bob"}': 20, '{"id": 3, "who": "bob"}': 45, "broken": 53},
        {'{"id": 4, "who": "ann"}': 4},
    ]
    for number, batch in enumerate(ages):
        path = tmp_path / f"{number}.json"
        path.write_text("".join(json.dumps({"value": text, "time": now - age}) + "\n" for text, age in batch.items()))
        os.utime(path, (now + number, now + number))
    read = spark.readStream.schema("value STRING, time DOUBLE").option("maxFilesPerTrigger", 1).json(str(tmp_path))
    return Frame(read.withColumn("time", F.col("time").cast("timestamp")), ORDER)


def test_a_stream_knows_how_old_the_messages_at_every_step_were(spark: SparkSession, aged: Frame) -> None:
    taps = Route("in", aged).filter(body.id != 3).tap("y").to("x")
    found = run_stream(app(taps, x=Memory(), y=Memory()), once=True, spark=spark).summary
    after = Latency(3, 34.0, 20.0, 4.0)
    assert found.step_latency == {
        "in.decode": Latency(5, 132.0, 53.0, 4.0), "in.filter": Latency(4, 79.0, 45.0, 4.0),
        "in.tap": after, "in.to": after,
    }  # fmt: skip
    assert found.latency == {"x": after, "y": after}


def test_messages_that_a_step_has_taken_count_in_its_latency(spark: SparkSession, aged: Frame) -> None:
    pairs = Route("in", aged).filter(body.id != 3).aggregate(collect("ids", of="id"), by=body.who, size=2, name="pair")
    seen: list[Summary] = []
    found = run_stream(app(pairs.to("x"), x=Memory()), once=True, spark=spark, on_batch=seen.append).summary
    assert [summary.received for summary in seen] == [4, 5]
    assert seen[0].step_latency == {
        "in.decode": Latency(4, 128.0, 53.0, 53.0),
        "in.filter": Latency(3, 75.0, 45.0, 45.0),
        "in.pair": Latency(2, 30.0, 20.0, 20.0),
    }
    # A pair has the time of its last message.
    assert found.step_latency == {
        "in.decode": Latency(5, 132.0, 53.0, 4.0),
        "in.filter": Latency(4, 79.0, 45.0, 4.0),
        "in.pair": Latency(3, 34.0, 20.0, 4.0),
        "in.to": Latency(1, 4.0, 4.0, 4.0),
    }
    assert found.latency == {"x": found.step_latency["in.to"]}


def test_times_are_merged_by_the_number_of_messages() -> None:
    assert Times(1, 10.0, 10.0) + Times(3, 6.0, 2.0) == Times(4, 7.0, 2.0)
    assert Times(1, 10.0, 10.0) + Times() == Times() + Times(1, 10.0, 10.0) == Times(1, 10.0, 10.0)
    assert Times(2) + Times(3) == Times(5)
    assert Times(0, 9.0, 9.0) + Times(1, 10.0, 10.0) == Times(1, 10.0, 10.0)
    assert (Times(0, 9.0, 9.0) + Times(0, 9.0, 9.0)).known is None

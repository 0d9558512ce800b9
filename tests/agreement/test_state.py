"""Apps whose steps remember: Spark, in batch and as a stream, says what the reference says."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import (
    App,
    Json,
    Memory,
    Message,
    Route,
    body,
    collect,
    combine,
    count_of,
    fold,
    function,
    join,
    latest,
    max_of,
    mean_of,
    meta,
    min_of,
    sum_of,
    union,
)
from penstock.message import DeadLetter
from penstock.reference.run import cut, run_batches
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from penstock.testing import on_lists

SCHEMA = Json(
    "k STRING, g BIGINT, n BIGINT, price DOUBLE, done BOOLEAN, parts ARRAY<STRUCT<id: STRING, q: BIGINT>>, x VARIANT"
)
SINKS = {"out": Memory()}
ROWS_PER_BATCH = 25


def source() -> Route:
    return Route("r", Memory(format=SCHEMA))


def no_three(value: int | None) -> int | None:
    if value == 3:
        raise ValueError("no three")
    return value


def longest(members: Any) -> Any:
    import pyarrow as pa

    if any(key == "c" for key in members["k"].to_pylist()):
        raise ValueError("c is not combined")
    return pa.table({"most": [max(members["n"].to_pylist(), default=None)], "rows": [members.num_rows]})


def app_of(route: Route, *others: Route, **sinks: Memory) -> App:
    return App("state", route, *others, sinks={**SINKS, **sinks}, dead_letters=Memory())


checked = function(no_three, body.n, returns="BIGINT")
FOLD = fold(total=sum_of(body.price), n=count_of(), some=count_of(body.done), low=min_of(body.n), high=max_of(body.n),
            mean=mean_of(body.n))  # fmt: skip
APPS = {
    "size": app_of(source().aggregate(collect("items"), by=body.k, size=4).to("out")),
    "several keys, predicate": app_of(
        source()
        .aggregate(collect("ns", of="n", head=["k"], tail=["g"]), by=[body.k, body.g], when=body.done, size=5).to("out")
    ),
    "fold": app_of(source().aggregate(FOLD, by=body.g, size=6).to("out")),
    "fold, too large": app_of(source().aggregate(fold(total=sum_of(body.n * 10**18)), by=body.g, size=5).to("out")),
    "fold, too large, of other bodies": app_of(
        source().enrich({"m": body.n * 10**18}).aggregate(fold(total=sum_of(body.m)), by=body.k, size=5,
                                                          closed="dead", closed_for="1 hour").to("out")
    ),
    "union": app_of(source().aggregate(union(), by=body.k, size=3).to("out")),
    "flushed": app_of(source().aggregate(collect("ns", of="n"), by=body.k, size=7, on_stop="flush").to("out")),
    "discarded": app_of(source().resequence(body.n, by=body.k, window=3, first=0, on_stop="discard").to("out")),
    "latest": app_of(source().aggregate(latest(), by=body.k, batch_end=True).to("out")),
    "new group": app_of(source().aggregate(collect("ns", of="n"), by=body.g, new_group=True, size=4).to("out")),
    "combine": app_of(
        source().drop("x").aggregate(combine(longest, "most BIGINT, rows BIGINT"), by=body.k, size=4).to("out")
    ),
    "closed": app_of(
        source().aggregate(fold(n=count_of()), by=body.g, size=7, closed="dead", closed_for="1 hour").to("out")
    ),
    "parts": app_of(
        source().split(body.parts, into="part", head=["k"])
        .aggregate(collect("parts", of="part", head=["k"]), size="parts").to("out")
    ),
    "sequences": app_of(source().resequence(body.n, by=body.k, size=3, duplicate="filter").to("out")),
    "window": app_of(source().resequence(body.n, by=body.k, window=2, first=0, keep="1 hour").to("out")),
    "idempotent": app_of(source().idempotent([body.k, body.n]).to("out")),
    "idempotent, failing": app_of(
        source().idempotent(body.n, duplicates="twice").enrich({"m": checked}).to("out"), twice=Memory()
    ),
    "idempotent, last keys": app_of(source().idempotent(body.n, keep_last=3).to("out")),
    "two steps": app_of(
        source().idempotent(meta("id")).resequence(body.n, by=body.g, size=2, duplicate="filter")
        .aggregate(collect("ns", of="n"), by=body.k, size=3).to("out")
    ),
    "scattered": app_of(
        source().multicast("left", "right"),
        Route("a", "left").translate({"k": body.k, "n": body.n}).to("both"),
        Route("b", "right").translate({"k": body.k, "n": checked}).to("again"),
        Route("c", join("both", "again")).aggregate(collect("ns", of="n", head=["k"]), by=meta("id"), size=2).to("out"),
    ),
}  # fmt: skip


def bodies(count: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)

    def one() -> dict[str, Any]:
        made = {
            "k": chance.choice("aaabc"), "g": chance.randrange(4), "n": chance.randrange(12),
            "price": chance.choice([0.5, 1.25, 100.0]), "done": chance.random() < 0.2,
            "parts": [{"id": f"p{number}", "q": number} for number in range(chance.randrange(4))],
            "x": chance.choice([1, "text", {"deep": [1, None]}]),
        }  # fmt: skip
        return {name: value for name, value in made.items() if chance.random() > 0.05}

    return [one() for _ in range(count)]


def said(messages: list[Message]) -> Counter[Any]:
    return Counter((message.id, tuple(sorted(message.headers.items())), message.raw) for message in messages)


def died(letters: list[DeadLetter]) -> Counter[Any]:
    return Counter(
        (letter.message.id, letter.message.raw, tuple(sorted(letter.message.headers.items())), letter.message.position,
         body_of(letter), letter.step, letter.error, letter.reason, letter.attempt)
        for letter in letters
    )  # fmt: skip


def body_of(letter: DeadLetter) -> str | None:
    """Fields of a body that was rewritten: without them the letter could not go on at its step."""
    fields = letter.message.fields if letter.message.rewritten else None
    return None if fields is None else json.dumps({name: fields.get(name) for name in ("k", "m")})


@pytest.mark.parametrize("name", APPS)
def test_a_batch_agrees(spark: SparkSession, name: str) -> None:
    given = {"r": bodies(60, seed=1)}
    tested = on_lists(APPS[name], given, partitions=3)
    expected, found = run_batches(tested.plan, [(0.0, given)]), run_batch(tested, spark)
    assert {channel: said(sent) for channel, sent in found.channels.items()} == {
        channel: said(sent) for channel, sent in expected.channels.items()
    }
    assert died(found.dead) == died(expected.dead)
    assert found.summary.conserved
    assert (found.summary.held, found.summary.copied) == (expected.held, expected.copied)
    assert dict(found.summary.filtered) == dict(expected.filtered)


@pytest.mark.parametrize("name", [name for name in APPS if name not in ("idempotent, failing",)])
def test_a_stream_agrees(spark: SparkSession, name: str) -> None:
    given = {"r": bodies(60, seed=2)}
    tested = on_lists(APPS[name], given)
    pieces = cut(given, [ROWS_PER_BATCH] * 3)
    expected = run_batches(tested.plan, [(float(number), piece) for number, piece in enumerate(pieces)], stream=True)
    found = run_stream(tested, once=True, spark=spark, rows_per_batch=ROWS_PER_BATCH)
    assert {channel: said(sent) for channel, sent in found.channels.items()} == {
        channel: said(sent) for channel, sent in expected.channels.items()
    }
    assert died(found.dead) == died(expected.dead)
    assert found.summary.conserved
    assert (found.summary.held, found.summary.copied) == (expected.held, expected.copied)

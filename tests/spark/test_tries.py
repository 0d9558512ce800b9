"""Tries without a delay: made by the step that failed, in the same pass, with the numbers of the reference."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import App, Json, Memory, Message, Route, body, collect, fold, function, header, lookup_table, sum_of
from penstock.message import DeadLetter
from penstock.reference.run import cut, run_batches
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from penstock.summary import Summary
from penstock.testing import on_lists, run

GIVEN: list[Any] = [
    {"n": n, "k": "abc"[n % 3], **({"price": n / 2} if n % 4 else {}), "tags": [n] * (n % 3)} for n in range(12)
]


def source() -> Route:
    return Route("r", Memory(format=Json("n BIGINT, k STRING, price DOUBLE, tags ARRAY<BIGINT>")))


def app(*routes: Route) -> App:
    return App("tries", *routes, sinks={"out": Memory()}, dead_letters=Memory())


def patient(value: int | None, tries: str | None) -> int | None:
    """Fails as often as the value says."""
    if value is not None and int(tries or 0) < value % 6:
        raise TimeoutError(f"not at {tries}")
    return value


def odd(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


def evens(table: pa.Table) -> pa.Table:
    for value in table["n"].to_pylist():
        odd(value)
    return table.select(["n", "k"])


slow = function(patient, body.n, header.redelivered, returns="BIGINT")
never = function(odd, body.n, returns="BIGINT")
TABLE = lookup_table([{"id": n, "name": f"name {n}"} for n in range(5)], key="id")
APPS = {
    "function": app(source().enrich({"m": never}).on_error(attempts=3, delay=0).to("out")),
    "function that knows the try": app(
        source().enrich({"m": slow, "before": header.redelivered}).on_error(attempts=3, delay=0).to("out")
    ),
    "functions of one step": app(
        source()
        .enrich({"m": slow, "o": function(patient, body.n * 2, header.redelivered, returns="BIGINT"), "p": never})
        .on_error(attempts=4, delay=0).to("out")
    ),
    "function of a function": app(
        source().enrich({"m": function(patient, slow + 1, header.redelivered, returns="BIGINT")})
        .on_error(attempts=5, delay=0).to("out")
    ),
    "two steps share their tries": app(
        source().filter(slow >= 0).enrich({"m": never}).on_error(attempts=4, delay=0).to("out")
    ),
    "two routes count for themselves": app(
        source().enrich({"m": slow}).on_error(attempts=4, delay=0).to("next"),
        Route("s", "next").enrich({"o": never}).on_error(attempts=2, delay=0).to("out"),
    ),
    "script": app(source().script(evens, "n BIGINT, k STRING").on_error(attempts=3, delay=0).to("out")),
    "other errors": app(
        source().enrich({"m": never}).filter(body.price > 1, missing="dead")
        .on_error(attempts=3, delay=0, errors=["MissingField"]).to("out")
    ),
    "not in the table": app(
        source().enrich_from(TABLE, on=body.n, missing="dead").on_error(attempts=2, delay=0).to("out")
    ),
    "original": app(
        source().enrich({"n": body.n + 1}).filter(body.n > 2).enrich({"m": slow})
        .on_error(attempts=3, delay=0, message="original").to("out")
    ),
    "parts": app(
        source().split(body.tags, into="n", head=["k"]).enrich({"m": never}).on_error(attempts=2, delay=0).to("out")
    ),
    "key": app(
        source().aggregate(fold(total=sum_of(body.n)), by=function(patient, body.n, header.redelivered,
        returns="BIGINT"), batch_end=True).on_error(attempts=2, delay=0).to("out")
    ),
    "before a group": app(
        source().enrich({"m": slow}).aggregate(collect("ms", of="m"), by=body.k, size=2)
        .on_error(attempts=3, delay=0).to("out")
    ),
}  # fmt: skip
LATER = {
    "behind a receiver": app(source().idempotent(body.k).enrich({"m": slow}).on_error(attempts=3, delay=0).to("out")),
    "original after a function": app(
        source().enrich({"o": function(patient, body.n * 3, header.redelivered, returns="BIGINT")})
        .enrich({"m": slow}).on_error(attempts=4, delay=0, message="original").to("out")
    ),
    "original behind a receiver": app(
        source().idempotent(body.n).enrich({"m": slow}).on_error(attempts=2, delay=0, message="original").to("out")
    ),
    "value that a function did not give": app(
        source().filter(function(patient, body.n, header.redelivered, returns="BIGINT") > 3, missing="dead")
        .on_error(attempts=3, delay=0).to("out")
    ),
    "condition that knows the try": app(
        source().filter(header.redelivered != "0", missing="dead").on_error(attempts=3, delay=0).to("out")
    ),
}  # fmt: skip


def facts(channels: dict[str, list[Message]], dead: list[DeadLetter], summary: Summary) -> dict[str, Any]:
    def about(message: Message) -> tuple[Any, ...]:
        return message.id, tuple(sorted(message.headers.items())), message.raw

    return {
        "sent": {name: Counter(map(about, messages)) for name, messages in channels.items()},
        "dead": Counter((*about(one.message), one.step, one.error, one.reason, one.attempt) for one in dead),
        "steps": {name: step.as_dict() for name, step in summary.steps.items()},
    }


@pytest.mark.parametrize("name", [*APPS, *LATER])
def test_a_batch_agrees(name: str, spark: SparkSession) -> None:
    tested = on_lists((APPS | LATER)[name], {"r": GIVEN}, partitions=2)
    expected, found = run_batches(tested.plan, [(0.0, {"r": GIVEN})]), run_batch(tested, spark)
    assert facts(found.channels, found.dead, found.summary) == facts(
        expected.channels, expected.dead, expected.summary("tries")
    )
    assert found.summary.conserved


@pytest.mark.parametrize("name", ["function that knows the try", "script", "other errors", "before a group"])
def test_a_stream_agrees(name: str, spark: SparkSession) -> None:
    tested = on_lists(APPS[name], {"r": GIVEN})
    pieces = [(float(number), piece) for number, piece in enumerate(cut({"r": GIVEN}, [5, 5, 2]))]
    expected = run_batches(tested.plan, pieces, stream=True)
    found = run_stream(tested, once=True, spark=spark, rows_per_batch=5)
    assert facts(found.channels, found.dead, found.summary) == facts(
        expected.channels, expected.dead, expected.summary("tries")
    )
    assert found.summary.conserved


def test_nothing_is_kept_for_tries_at_once(spark: SparkSession) -> None:
    needs_state = {"key", "before a group", "functions of one step", "function of a function"}
    assert {name for name, made in APPS.items() if made.plan.remembers} == needs_state
    assert all(made.plan.remembers for made in LATER.values())
    result = run_batch(on_lists(APPS["function"], {"r": GIVEN}), spark)
    assert (result.summary.batches, {letter.attempt for letter in result.dead}) == (1, {4})


def test_the_duplicate_of_a_message_that_needed_another_try_is_a_duplicate(spark: SparkSession) -> None:
    given = [{"n": 1, "k": "a"}, {"n": 2, "k": "a"}, {"n": 5, "k": "b"}, {"n": 0, "k": "b"}]
    tested = on_lists(LATER["behind a receiver"], {"r": given})
    result = run_batch(tested, spark)
    # 1 succeeds at its second try, so 2 is a duplicate; 5 fails for good, so 0 gets its chance.
    assert [json.loads(message.raw)["n"] for message in result.channels["out"]] == [1, 0]
    assert [json.loads(letter.message.raw)["n"] for letter in result.dead] == [5]
    assert dict(result.summary.filtered) == {"r.idempotent": 1}


class Once:
    """A script that fails for a number the first time that it sees it, and for 9 always."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.calls: list[int] = []

    def __call__(self, table: pa.Table) -> pa.Table:
        self.calls.append(len(table))
        fresh = [n for n in table["n"].to_pylist() if n == 9 or n not in self.seen]
        if len(table) == 1:
            self.seen += fresh
        if fresh:
            raise TimeoutError("later")
        return table


def test_a_script_is_called_again_for_the_messages_that_failed() -> None:
    once = Once()
    route = Route("r", Memory(format=Json("n BIGINT"))).script(once, "n BIGINT").on_error(attempts=2, delay=0)
    result = run(app(route.to("out")), [{"n": 1}, {"n": 2}, {"n": 9}], "kernel")
    assert result.bodies("out") == [{"n": 1}, {"n": 2}]
    assert [(letter.reason, letter.attempt) for letter in result.dead] == [("TimeoutError: later", 3)]
    assert once.calls[0] == 3

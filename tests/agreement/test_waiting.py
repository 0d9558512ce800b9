"""Messages that wait, for another try or for the fate of another one: the kernel does what the reference does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import App, Json, Memory, Route, body, collect, combine, count_of, fold, function, header, meta
from penstock.testing import KERNEL, REFERENCE, run
from tests.agreement.test_kernel import assert_identical

MANY = settings(max_examples=20, suppress_health_check=list(HealthCheck), print_blob=True, deadline=None)
SCHEMA = Json("k STRING, n BIGINT, parts ARRAY<STRUCT<q: BIGINT>>")
BODIES = st.fixed_dictionaries({
    "k": st.sampled_from("aab"), "n": st.integers(0, 5),
    "parts": st.lists(st.fixed_dictionaries({"q": st.integers(0, 5)}), max_size=3),
})  # fmt: skip
TIMINGS: list[dict[str, Any]] = [
    {}, {"batches": [5, 0, 7, 12], "clock": [0.0, 0.5, 7.0, 7.5]},
    {"batches": [12, 12], "clock": [0.0, 0.0], "stop": False},
]  # fmt: skip


def in_time(number: int | None, tries: str | None) -> int:
    """Fails as often as the number says."""
    if (number or 0) > int(tries or 0):
        raise ValueError(f"{number} at try {tries}")
    return (number or 0) * 10


def never_three(number: int | None) -> int | None:
    if number == 3:
        raise ValueError("no three")
    return number


def largest(members: Any) -> Any:
    import pyarrow as pa

    if len(set(members["n"].to_pylist())) > 1:
        raise ValueError("not alike")
    return pa.table({"most": [max(members["n"].to_pylist())], "rows": [members.num_rows]})


def source(message: str = "current", attempts: int = 3, delay: object = "2 s") -> Route:
    return Route("r", Memory(format=SCHEMA)).on_error(attempts=attempts, delay=delay, jitter=0.3, message=message)


tried, tried_part = (function(in_time, field, header.redelivered, returns="BIGINT")
                     for field in (body.n, body["part"].q))  # fmt: skip
checked = function(never_three, body.n, returns="BIGINT")


def app_of(*routes: Route, **sinks: Memory) -> App:
    return App("waiting", *routes, sinks={"out": Memory(), **sinks}, dead_letters=Memory())


APPS = {
    "at the step": app_of(source().enrich({"m": tried}).to("out")),
    "with a body that was rewritten": app_of(
        source().translate({"k": body.k, "n": body.n, "twice": body.n * 2}).enrich({"m": tried}).to("out")),
    "from the start": app_of(
        source("original").enrich({"k": "x", "first": header.redelivered}).translate({"n": tried, "first": body.first})
        .to("out")),
    "from the start of a route in the middle": app_of(
        Route("r", Memory(format=SCHEMA)).translate({"n": body.n, "k": body.k}).to("middle"),
        Route("s", "middle").on_error(attempts=2, delay="3 s", message="original")
        .enrich({"k": checked}).enrich({"n": tried}).to("out")),
    "parts": app_of(source().split(body.parts, into="part", head=["k"]).enrich({"m": tried_part}).to("out")),
    "copies": app_of(
        source().multicast("left", "right"),
        Route("a", "left").on_error(attempts=2, delay="1 s").enrich({"m": tried}).to("out"),
        Route("b", "right").enrich({"m": checked}).to("out")),
    "behind a resequencer": app_of(
        source().resequence(body.n, by=body.k, window=3, duplicate="filter").enrich({"m": tried}).to("out")),
    "before an aggregator": app_of(
        source().enrich({"m": tried}).aggregate(collect("ns", of="m", head=["k"]), by=body.k, size=3).to("out")),
    "behind an aggregator": app_of(
        source().aggregate(fold(n=count_of()), by=body.k, size=3)
        .enrich({"m": function(in_time, body.n, header.redelivered, returns="BIGINT")}).to("out")),
    "a group that fails": app_of(
        source(attempts=2).aggregate(combine(largest, "most BIGINT, rows BIGINT"), by=body.k, size=2).to("out")),
    "a receiver": app_of(
        Route("r", Memory(format=SCHEMA)).idempotent(body.n, duplicates="twice").enrich({"m": checked}).to("out"),
        twice=Memory()),
    "a receiver and tries": app_of(source(attempts=1).idempotent(body.n).enrich({"m": tried}).to("out")),
    "a receiver, tries from the start": app_of(
        source("original", attempts=1).idempotent(body.n, keep_last=3).enrich({"m": tried}).to("out")),
    "two receivers": app_of(
        Route("r", Memory(format=SCHEMA)).idempotent([body.k, body.n]).to("next"),
        Route("s", "next").idempotent(body.n).resequence(body.n, by=body.k, size=2, duplicate="dead")
        .enrich({"m": checked}).to("out")),
    "a receiver by id, and a group": app_of(
        Route("r", Memory(format=SCHEMA)).idempotent(meta("id"))
        .aggregate(combine(largest, "most BIGINT, rows BIGINT"), by=body.k, size=2).to("out")),
}  # fmt: skip


@pytest.mark.parametrize("name", APPS)
@MANY
@given(messages=st.lists(BODIES, max_size=24))
def test_the_kernel_waits_as_the_reference_does(name: str, messages: list[dict[str, Any]]) -> None:
    for timing in TIMINGS:
        expected, found = (run(APPS[name], messages, engine, **timing) for engine in (REFERENCE, KERNEL))
        assert_identical(expected, found)

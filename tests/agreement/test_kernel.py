"""The block engine must do what the reference does, byte for byte, on random routes and random messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import App, Json, Memory, Route, body, collect, count_of, fold, function, header, min_of
from penstock.message import DeadLetter, Message
from penstock.testing import KERNEL, REFERENCE, Result, run
from tests.agreement import test_state as remembering
from tests.agreement import test_stopping as stopping
from tests.agreement.strategies import SCHEMA, WITH_HEADERS, apps, deciding_apps
from tests.agreement.test_agreement import assert_same, describe

MANY = settings(max_examples=300, suppress_health_check=list(HealthCheck), print_blob=True, deadline=None)


def seen(message: Message) -> tuple[Any, ...]:
    return message.id, message.raw, dict(message.headers), message.lineage, message.position


def buried(letter: DeadLetter) -> tuple[Any, ...]:
    """Without the fields: the reference keeps also those that nobody reads."""
    return *seen(letter.message), letter.route, letter.step, letter.error, letter.reason, letter.attempt


def assert_identical(expected: Result, found: Result) -> None:
    assert_same(expected, found)
    for channel in expected.channels:
        assert list(map(seen, expected.messages(channel))) == list(map(seen, found.messages(channel)))
    assert sorted(map(buried, expected.dead), key=repr) == sorted(map(buried, found.dead), key=repr)


@MANY
@given(apps() | deciding_apps(), WITH_HEADERS)
def test_the_kernel_does_what_the_reference_does(app: App, messages: list[bytes | Message]) -> None:
    describe(app, messages)
    assert_identical(run(app, messages, REFERENCE), run(app, messages, KERNEL))


@MANY
@given(stopping.apps(), stopping.MESSAGES)
def test_the_kernel_stops_what_the_reference_stops(app: App, messages: list[bytes]) -> None:
    describe(app, messages)
    assert_identical(run(app, messages, REFERENCE), run(app, messages, KERNEL))


def second_time(number: int, tries: str | None) -> bool:
    if number % 3 >= int(tries or 0) + 1:
        raise ValueError(f"not at try {tries}")
    return number > 0


@MANY
@given(st.lists(st.integers(-5, 5), max_size=12), st.integers(1, 3))
def test_the_kernel_tries_again_at_once_as_the_reference_does(numbers: list[int], attempts: int) -> None:
    tried = function(second_time, body.n, header.redelivered, returns="BOOLEAN")
    route = Route("in", Memory((), Json(SCHEMA))).on_error(attempts=attempts, delay=0)
    route = route.filter(tried).translate({"n": body.n, "tries": header.redelivered})
    app = App("tries", route.to("out"), sinks={"out": Memory()}, dead_letters=Memory())
    messages = [b'{"n": %d}' % number for number in numbers]
    assert_identical(run(app, messages, REFERENCE), run(app, messages, KERNEL))


def key_at_second_try(number: int | None, tries: str | None) -> int:
    if (number or 0) % 2 and tries is None:
        raise ValueError("not at once")
    return (number or 0) % 3


source = remembering.source
tried_key = function(key_at_second_try, body.n, header.redelivered, returns="BIGINT")
ONE_AFTER_THE_OTHER = {
    "resequenced, then collected": source().resequence(
        body.n, by=body.k, window=2, late="dead", on_stop="discard").aggregate(
        collect("ns", of="n"), by=body.k, size=4),
    "folded, then collected": source().aggregate(
        fold(n=count_of(), low=min_of(body.n)), by=body.g, size=4, on_stop="discard").aggregate(
        collect("lows", of="low"), by=body.n, size=2),
    "a key at the second try": source().on_error(attempts=2, delay=0).aggregate(
        collect("ns", of="n"), by=tried_key, size=3),
    "closed at the second try": source().on_error(attempts=2, delay=0).enrich({"z": tried_key}).aggregate(
        collect("ns", of="z"), by=body.k, size=3, closed="dead", closed_for="1 hour"),
    "headers before and behind": source().headers({"k": body.k, "n": body.n}, remove=["x"]).aggregate(
        collect("ns", of="n"), by=header["k"], size=3).headers({"last": header["n"], "size": header["group-size"]}),
    "parts of parts, resequenced": source().split(body.parts, into="part", head=["k", "n"]).resequence(
        body.n, by=body.k, size=3, duplicate="filter").aggregate(collect("ps", of="part"), by=body.k, size=2),
}  # fmt: skip
REMEMBERING = remembering.APPS | {
    name: remembering.app_of(route.to("out")) for name, route in ONE_AFTER_THE_OTHER.items()
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_the_kernel_remembers_as_the_reference_does(name: str) -> None:
    app = REMEMBERING[name]
    for seed in range(12):
        given = remembering.bodies(60, seed)
        for timing in ({}, {"batches": [25, 0, 35], "clock": [0.0, 10.0, 5000.0]}):
            assert_identical(run(app, given, REFERENCE, **timing), run(app, given, KERNEL, **timing))

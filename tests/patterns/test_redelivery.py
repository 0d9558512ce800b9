from __future__ import annotations

from typing import Any

import pytest

from penstock import Route, body, collect, combine, function
from penstock.errors import PenstockError
from penstock.patterns.redelivery import Redelivery, redelivery
from penstock.reference.run import run_batches, trace
from tests.patterns.apps import app, arrived, headers, start, through, why


class Flaky:
    """A call that fails some times per value, then succeeds."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls: list[Any] = []
        self.__module__, self.__qualname__ = __name__, "flaky"

    def __call__(self, value: Any) -> Any:
        self.calls.append(value)
        if self.calls.count(value) <= self.failures:
            raise TimeoutError("try again")
        return value


def calling(flaky: Flaky, **policy: Any) -> Route:
    return start().enrich({"id": function(flaky, body.id, returns="BIGINT")}).on_error(**policy).to("x")


def test_a_message_that_fails_is_tried_again() -> None:
    result = through(calling(Flaky(2), attempts=2), [{"id": 1}, {"id": 2}])
    assert arrived(result) == [{"id": 1}, {"id": 2}]
    assert headers(result, "redelivered") == ["2", "2"]


def test_then_it_is_a_dead_letter_that_says_how_often_it_was_tried() -> None:
    result = through(calling(Flaky(9), attempts=3), [{"id": 1}])
    (letter,) = result.dead
    assert (letter.attempt, letter.error, letter.message.headers) == (4, "FunctionFailed", {"redelivered": "3"})


@pytest.mark.parametrize("attempts", [1, 2, 4, 8, 16, 32])
def test_it_is_tried_as_often_as_declared(attempts: int) -> None:
    flaky = Flaky(99)
    through(calling(flaky, attempts=attempts, delay=0), [{"id": 1}])
    assert len(flaky.calls) == attempts + 1


def test_without_a_delay_it_is_tried_at_once() -> None:
    result = through(calling(Flaky(2), attempts=2, delay=0), [{"id": 1}], stop=False)
    assert (arrived(result), result.summary.held) == ([{"id": 1}], 0)


def test_it_waits_for_its_time_and_the_others_do_not() -> None:
    slow = Flaky(2)

    def call(value: int) -> int:
        return slow(value) if value == 1 else value

    route = start().enrich({"id": function(call, body.id, returns="BIGINT")}).on_error(delay="1 s").to("x")
    plan = app(route).plan
    batches = [(0.0, [{"id": 1}, {"id": 2}]), (0.9, [{"id": 3}]), (1.0, []), (2.9, []), (3.0, [{"id": 4}])]
    outcome = run_batches(plan, batches, stop=False)
    assert [len(batch.channels["x"]) for batch in outcome.batches] == [1, 1, 0, 0, 2]
    assert [batch.held for batch in outcome.batches] == [1, 0, 0, 0, -1]
    assert all(batch.summary("a").conserved for batch in outcome.batches)


def test_waits_grow_to_the_cap() -> None:
    policy = redelivery(attempts=5, delay="1 s", backoff=3, cap="10 s")
    assert [policy.due("m", attempt, 100.0) for attempt in range(1, 6)] == [101.0, 103.0, 109.0, 110.0, 110.0]
    assert redelivery(backoff=1000).wait("m", 500) == 60.0


def test_jitter_is_the_same_on_every_replay_and_never_longer_than_the_delay() -> None:
    policy = redelivery(delay=10, backoff=1, jitter=0.5)
    waits = [policy.wait(f"m{n}", 1) for n in range(200)]
    assert waits == [policy.wait(f"m{n}", 1) for n in range(200)]
    assert 5 <= min(waits) < 5.5
    assert 9.5 < max(waits) <= 10
    assert policy.wait("m", 1) != policy.wait("m", 2)


def test_only_the_listed_errors_are_tried_again() -> None:
    route = start().filter(body.price > 0, missing="dead").on_error(errors=["FunctionFailed"]).to("x")
    assert [letter.attempt for letter in through(route, [{}]).dead] == [1]
    route = start().filter(body.price > 0, missing="dead").on_error(attempts=2, errors=["MissingField"]).to("x")
    assert [letter.attempt for letter in through(route, [{}]).dead] == [3]


def test_the_current_message_goes_on_from_the_step_that_failed() -> None:
    flaky = Flaky(1)
    route = start().enrich({"id": body.id + 10}).enrich({"id": function(flaky, body.id, returns="BIGINT")})
    result = through(route.on_error().to("x"), [{"id": 1}])
    assert (set(flaky.calls), arrived(result)) == ({11}, [{"id": 11}])


def test_the_original_message_starts_again_at_the_route() -> None:
    before, flaky = Flaky(0), Flaky(1)
    routes = (
        start().enrich({"id": body.id + 10}).to("inner"),
        Route("inner", "inner")
        .enrich({"id": function(before, body.id, returns="BIGINT")})
        .enrich({"id": function(flaky, body.id + 5, returns="BIGINT")})
        .on_error(message="original")
        .to("x"),
    )
    result = through(routes, [{"id": 1}])
    assert (set(before.calls), set(flaky.calls)) == ({11}, {16})
    assert (arrived(result), headers(result, "redelivered")) == ([{"id": 16}], ["1"])


def test_tries_are_counted_per_route() -> None:
    first, second = Flaky(1), Flaky(1)
    routes = (
        start().enrich({"id": function(first, body.id, returns="BIGINT")}).on_error(attempts=1).to("inner"),
        Route("inner", "inner")
        .enrich({"id": function(second, body.id, returns="BIGINT")})
        .on_error(attempts=1)
        .to("x"),
    )
    assert arrived(through(routes, [{"id": 1}])) == [{"id": 1}]


def test_a_body_that_cannot_be_decoded_is_not_tried_again() -> None:
    result = through(start().filter(body.id > 0).on_error().to("x"), ["broken"])
    assert [(letter.step, letter.attempt) for letter in result.dead] == [("decode", 1)]


def test_a_recipient_that_is_unknown_stays_unknown() -> None:
    result = through(start().recipients(body.name, known=["x"]).on_error(), [{"name": "x,y"}])
    assert (len(arrived(result)), [letter.attempt for letter in result.dead]) == (1, [1])


def test_members_of_a_group_that_failed_come_back_to_the_aggregator() -> None:
    calls: list[int] = []

    def flaky(table: Any) -> Any:
        calls.append(table.num_rows)
        if len(calls) < 3:
            raise TimeoutError("later")
        return table.slice(0, 1)

    for delay in ("1 s", 0):
        calls.clear()
        route = start().keep("id").aggregate(combine(flaky, "id BIGINT"), by=True, size=2).on_error(delay=delay).to("x")
        result = through(route, [{"id": 1}, {"id": 2}])
        assert (arrived(result), calls, result.summary.held) == ([{"id": 1}], [2, 2, 2], 0)


def test_a_group_that_is_flushed_at_the_stop_and_fails_is_tried_again() -> None:
    calls: list[int] = []

    def flaky(table: Any) -> Any:
        calls.append(table.num_rows)
        raise TimeoutError("never")

    for delay in ("1 s", 0):
        calls.clear()
        route = start().keep("id").aggregate(combine(flaky, "id BIGINT"), by=True, size=9)
        result = through(route.on_error(attempts=2, delay=delay).to("x"), [{"id": 1}, {"id": 2}])
        assert ([letter.attempt for letter in result.dead], calls, result.summary.held) == ([3, 3], [2, 2, 2], 0)


def test_a_group_can_wait_for_a_member_that_is_tried_again() -> None:
    route = start().enrich({"id": function(Flaky(1), body.id, returns="BIGINT")})
    route = route.aggregate(collect("all", of="id"), by=True, size=2).on_error().to("x")
    result = through(route, [{"id": 1}, {"id": 2}])
    assert (arrived(result), headers(result, "completed-by")) == ([{"all": [1, 2]}], ["size"])


def test_the_key_of_a_message_that_waits_for_another_try_is_forgotten() -> None:
    flaky = Flaky(1)
    route = start().idempotent(body.name).enrich({"id": function(flaky, body.id, returns="BIGINT")}).on_error().to("x")
    result = through(route, [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}], stop=False)
    assert result.summary.held == 2
    result = through(calling(Flaky(1), delay=0, message="original"), [{"id": 1}, {"id": 1}])
    assert arrived(result) == [{"id": 1}, {"id": 1}]


def test_a_message_is_no_duplicate_of_itself() -> None:
    for delay in (0, "1 s"):
        route = start().idempotent(body.id).enrich({"id": function(Flaky(1), body.id, returns="BIGINT")})
        result = through(route.on_error(delay=delay, message="original").to("x"), [{"id": 1}])
        assert (arrived(result), result.filtered) == ([{"id": 1}], {})


def test_a_trace_shows_every_try() -> None:
    plan = app(calling(Flaky(1))).plan
    assert [step.outcome for step in trace(plan, {"id": 7}).steps] == [
        "failed, to be tried again: FunctionFailed: TimeoutError: try again", "on", "-> x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"attempts": 0}, "attempts=0 is not a whole number from 1 up"),
        ({"attempts": -1}, "attempts=-1 is not a whole number"),
        ({"delay": -1}, "delay=-1 is not a length of time from 0"),
        ({"delay": "soon"}, "delay='soon' is not a length of time"),
        ({"cap": 0}, "cap=0 is not a length of time above 0"),
        ({"delay": "5 s", "cap": "1 s"}, "cap='1 s' is shorter than delay='5 s'"),
        ({"backoff": 0.5}, "backoff=0.5 is not a factor from 1 up"),
        ({"jitter": 2}, "jitter=2 is not a share between 0 and 1"),
        ({"errors": []}, r"errors=\[\] would try nothing again"),
        ({"errors": ["FunctionFaild"]}, "another try changes nothing for 'FunctionFaild'"),
        ({"errors": ["UnknownRecipient"]}, "another try changes nothing for 'UnknownRecipient'"),
        ({"message": "last"}, "message='last' is not a policy"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(PenstockError, match=f"route 'r': {said}"):
        start().on_error(**settings)


def test_a_route_has_one_policy() -> None:
    with pytest.raises(PenstockError, match="route 'r' has two redelivery policies"):
        start().on_error().on_error()
    assert start().on_error(delay="5 minutes").redelivery == Redelivery(5, 300.0, 2.0, 300.0)


@pytest.mark.parametrize(
    "route",
    [
        start().split(body.lines), start().tap("y"), start().script(len, "id BIGINT"),
        start().split(body.lines).aggregate(collect("a"), size="parts"), start().resequence(body.id, size=2),
        start().idempotent(body.id, remember_failed=True),
    ],
)  # fmt: skip
def test_an_original_message_must_not_do_twice_what_it_did(route: Route) -> None:
    with pytest.raises(PenstockError, match="route 'r' tries the original message again, but"):
        _ = app(route.on_error(message="original").to("x")).plan


def test_dead_letters_have_their_reason() -> None:
    assert why(through(calling(Flaky(9), attempts=1), [{"id": 1}])) == [
        ("enrich", "FunctionFailed", "TimeoutError: try again")
    ]

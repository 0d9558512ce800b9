from __future__ import annotations

import random
from typing import Any

import pytest

from penstock import Message, Route, body, collect, meta
from penstock.errors import PenstockError
from penstock.message import Position
from penstock.reference.run import trace
from tests.patterns.apps import app, arrived, start, through, why


def of(*numbers: int | None, name: str = "a") -> list[dict[str, Any]]:
    return [{"id": number, "name": name} for number in numbers]


def ids(result: Any) -> list[int]:
    return [found["id"] for found in arrived(result)]


def window(size: int = 3, **settings: Any) -> Route:
    return start().resequence(body.id, window=size, **settings).to("x")


def test_a_complete_sequence_goes_on_in_order() -> None:
    result = through(start().resequence(body.id, by=body.name, size=3).to("x"), of(3, 1, 2, 6, 5), stop=False)
    assert (ids(result), result.summary.held) == ([1, 2, 3], 2)


def test_sequences_of_a_key_follow_each_other() -> None:
    result = through(start().resequence(body.id, size=3).to("x"), of(3, 1, 2, 2, 3, 1))
    assert ids(result) == [1, 2, 3, 1, 2, 3]


def test_the_sequence_of_ten_orders_by_price() -> None:
    prices = list(range(100, 1100, 100))
    random.Random(1).shuffle(prices)
    route = start().resequence("to_integer(price)", size=10).to("x")
    result = through(route, [{"price": float(price)} for price in prices])
    assert [found["price"] for found in arrived(result)] == sorted(prices)


def test_every_key_has_its_own_sequence() -> None:
    route = start().resequence(body.id, by=body.name, size=2).to("x")
    result = through(route, [*of(2), *of(2, name="b"), *of(1, name="b"), *of(1)])
    assert [(found["name"], found["id"]) for found in arrived(result)] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_consecutive_numbers_go_on_and_others_wait_for_the_gap() -> None:
    result = through(window(first=1), of(2, 1, 4, 5, 3), batches=[2, 2, 1], stop=False)
    assert ids(result) == [1, 2, 3, 4, 5]
    waiting = through(window(first=1), of(2, 1, 4, 5), batches=[2, 2], stop=False)
    assert (ids(waiting), waiting.summary.held) == ([1, 2], 2)


def test_without_a_first_number_a_sequence_starts_with_the_lowest_of_its_first_batch() -> None:
    result = through(window(), of(7, 5, 6, 8), batches=[2, 2], stop=False)
    assert ids(result) == [5, 6, 7, 8]


def test_a_gap_is_skipped_when_too_many_wait() -> None:
    result = through(window(2, first=1), of(1, 3, 4, 6, 8), batches=[1, 2, 2], stop=False)
    assert (ids(result), result.summary.held) == ([1, 3, 4], 2)


def test_a_time_out_sends_all_that_wait() -> None:
    route = window(first=1, timeout="5 s")
    result = through(route, of(1, 3, 5, 6, 2), batches=[1, 2, 0, 1, 1], clock=[0, 1, 6, 6, 7], stop=False)
    assert ids(result) == [1, 3, 5, 6]
    assert why(result) == [("resequence", "LateMessage", "number 2 comes when 7 is expected")]


def test_a_time_out_can_discard() -> None:
    route = window(first=1, timeout="5 s", on_timeout="discard")
    result = through(route, of(3, 4, 5), batches=[2, 0, 1], clock=[0, 5, 6])
    assert (ids(result), result.filtered) == ([5], {"r.resequence": 2})


def test_a_time_out_ends_an_incomplete_sequence() -> None:
    route = start().resequence(body.id, size=3, timeout=5).to("x")
    assert ids(through(route, of(9, 8, 3, 2, 1), batches=[2, 3], clock=[0, 5])) == [8, 9, 1, 2, 3]


def test_a_sequence_that_was_quiet_for_some_time_is_forgotten() -> None:
    route = window(first=1, keep="10 s")
    result = through(route, of(1, 2, 1, 1), batches=[2, 1, 1], clock=[0, 9, 19])
    assert (ids(result), why(result)[0][1]) == ([1, 2, 1], "LateMessage")
    result = through(window(keep="10 s"), of(5, 6, 2, 3), batches=[2, 2], clock=[0, 10])
    assert ids(result) == [5, 6, 2, 3]


def test_a_sequence_in_which_somebody_waits_is_not_forgotten() -> None:
    result = through(window(first=1, keep="10 s"), of(1, 3, 2), batches=[2, 1], clock=[0, 99])
    assert ids(result) == [1, 2, 3]
    result = through(window(first=1, keep="10 s", timeout="20 s"), of(1, 3, 1), batches=[2, 1], clock=[0, 20])
    assert ids(result) == [1, 3, 1]


@pytest.mark.parametrize(("fate", "sent"), [("dead", [5, 6]), ("filter", [5, 6]), ("pass", [5, 6, 2])])
def test_a_late_number_has_a_declared_fate(fate: str, sent: list[int]) -> None:
    result = through(window(late=fate), of(5, 6, 2), batches=[2, 1])
    assert ids(result) == sent
    assert (len(result.dead), sum(result.filtered.values())) == {
        "dead": (1, 0), "filter": (0, 1), "pass": (0, 0),
    }[fate]  # fmt: skip


def test_late_is_judged_by_what_was_expected_when_the_batch_began() -> None:
    assert ids(through(window(first=1), of(1, 2, 3, 3, 2), batches=[5])) == [1, 2, 3]
    result = through(window(first=1), of(1, 2, 3, 3, 2), batches=[5])
    assert {error for _, error, _ in why(result)} == {"DuplicateSequence"}


@pytest.mark.parametrize("fate", ["dead", "filter"])
def test_of_two_messages_with_one_number_the_first_stays(fate: str) -> None:
    route = window(first=1, duplicate=fate)
    result = through(route, [{"id": 2, "name": "first"}, {"id": 2, "name": "second"}, {"id": 1}], batches=[1, 2])
    assert arrived(result) == [{"id": 1}, {"id": 2, "name": "first"}]
    if fate == "dead":
        assert why(result) == [("resequence", "DuplicateSequence", "number 2 is already waiting")]
    else:
        assert result.filtered == {"r.resequence": 1}


def test_what_has_no_number_or_no_key_is_invalid() -> None:
    route = start().resequence(body.id, by=body.name, window=2).to("x")
    result = through(route, [*of(None), {"id": 1}, *of(2)])
    assert why(result) == [
        ("resequence", "InvalidKey", "the sequence number has no value"),
        ("resequence", "InvalidKey", "the key has no value"),
    ]
    filtered = through(start().resequence(body.id, window=2, invalid="filter").to("x"), of(None, 1))
    assert (ids(filtered), filtered.filtered) == ([1], {"r.resequence": 1})


def test_what_waits_at_the_stop_is_flushed_discarded_or_held() -> None:
    assert ids(through(window(first=1), of(3, 2))) == [2, 3]
    discarded = through(window(first=1, on_stop="discard"), of(3, 2))
    assert (ids(discarded), discarded.filtered) == ([], {"r.resequence": 2})
    held = through(window(first=1, on_stop="hold"), of(3, 2))
    assert (ids(held), held.summary.held) == ([], 2)


def test_bodies_headers_and_positions_stay_as_they_are() -> None:
    two = [Message("m", b' {"id": 2}', headers={"h": "2"}), Message("n", b' {"id": 1}')]
    first, second = through(window(), two).channels["x"]
    assert (first.raw, second.raw, second.headers) == (b' {"id": 1}', b' {"id": 2}', {"h": "2"})
    assert second.position == Position("r", 0, 0)


def test_steps_after_it_see_the_new_order() -> None:
    route = start().resequence(body.id, size=4).aggregate(collect("all", of="id"), by=True, size=4).to("x")
    assert arrived(through(route, of(3, 1, 4, 2))) == [{"all": [1, 2, 3, 4]}]


def test_parts_can_be_put_in_the_order_of_the_split() -> None:
    routes = (
        start().split(body.lines).choice({"b": body.sku == "b"}, otherwise="rest"),
        Route("b", "b").to("all"),
        Route("rest", "rest").to("all"),
        Route("last", "all").resequence(meta("index"), by=meta("parent"), window=9, first=0).to("x"),
    )
    result = through(routes, [{"lines": [{"sku": "b"}, {"sku": "a"}, {"sku": "c"}]}])
    assert [found["sku"] for found in arrived(result)] == ["b", "a", "c"]


def test_a_trace_says_what_waits() -> None:
    steps = trace(app(window(first=1)).plan, {"id": 2}).steps
    assert [(step.step, step.outcome) for step in steps] == [
        ("resequence", "held (number 2)"), ("resequence", "on"), ("to", "-> x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "either size or window"),
        ({"size": 2, "window": 2}, "either size or window"),
        ({"size": 0}, "size=0 is not a whole number from 1 up"),
        ({"window": -1}, "window=-1 is not a whole number from 1 up"),
        ({"size": 2, "late": "pass"}, "late, first and keep are for an endless sequence"),
        ({"size": 2, "first": 1}, "late, first and keep are for an endless sequence"),
        ({"size": 2, "keep": 1}, "late, first and keep are for an endless sequence"),
        ({"window": 2, "keep": "ever"}, "keep='ever' is not a length of time"),
        ({"window": 2, "first": "one"}, "first='one' is not a whole number"),
        ({"window": 2, "timeout": 0}, "timeout=0 is not a length of time above 0"),
        ({"window": 2, "on_timeout": "discard"}, "on_timeout='discard' without a time-out"),
        ({"window": 2, "late": "ignore"}, "late='ignore' is not a policy"),
        ({"window": 2, "duplicate": "pass"}, "duplicate='pass' is not a policy"),
        ({"window": 2, "on_stop": "pass"}, "on_stop='pass' is not a policy"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(PenstockError, match=said):
        start().resequence(body.id, **settings)


def test_a_sequence_number_is_an_integer() -> None:
    with pytest.raises(PenstockError, match="a resequencer needs the number of a message in its sequence"):
        start().resequence(None, size=2)
    with pytest.raises(PenstockError, match="a sequence number is BIGINT, but price is DOUBLE"):
        _ = app(start().resequence(body.price, size=2).to("x")).plan
    with pytest.raises(PenstockError, match="but price is DOUBLE"):
        _ = app(start().resequence(body.id, by=body.price, size=2).to("x")).plan

from __future__ import annotations

from typing import Any

import pytest

from penstock import Message, Route, body, collect
from penstock.errors import PenstockError
from tests.patterns.apps import app, arrived, start, through, why


def of(*numbers: int, price: float | None = 1.0) -> list[dict[str, Any]]:
    return [{"id": number, "price": price} for number in numbers]


def ids(result: Any, channel: str = "x") -> list[int]:
    return [found["id"] for found in arrived(result, channel)]


def test_of_messages_with_one_key_the_first_goes_on() -> None:
    result = through(start().idempotent(body.id).to("x"), of(1, 2, 1, 3, 2, 1))
    assert (ids(result), result.filtered) == ([1, 2, 3], {"r.idempotent": 3})


def test_without_a_key_the_id_decides() -> None:
    messages = [Message(name, b'{"id": %d}' % number) for number, name in enumerate("aba")]
    assert ids(through(start().idempotent().to("x"), messages)) == [0, 1]


def test_a_key_can_have_several_parts() -> None:
    messages = [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, {"id": 1, "name": "a"}]
    assert len(arrived(through(start().idempotent([body.id, body.name]).to("x"), messages))) == 2


def test_duplicates_can_go_to_a_channel() -> None:
    result = through(start().idempotent(body.id, duplicates="again").to("x"), of(1, 1, 2), batches=[2, 1])
    assert (ids(result), ids(result, "again"), result.filtered) == ([1, 2], [1], {})


def test_keys_are_remembered_from_batch_to_batch() -> None:
    result = through(start().idempotent(body.id).to("x"), of(1, 2, 2, 1, 3), batches=[2, 2, 1])
    assert ids(result) == [1, 2, 3]


def test_none_of_many_different_messages_is_lost() -> None:
    result = through(start().idempotent(body.id).to("x"), of(*range(1000)), batches=[300, 300, 400])
    assert ids(result) == list(range(1000))


def test_a_key_is_kept_for_a_time_since_it_was_first_seen() -> None:
    route = start().idempotent(body.id, keep="10 s").to("x")
    result = through(route, of(1, 1, 1), batches=[1, 1, 1], clock=[0, 9, 10])
    assert (len(ids(result)), result.filtered) == (2, {"r.idempotent": 1})


def test_the_oldest_batches_are_forgotten_when_younger_ones_hold_enough_keys() -> None:
    route = start().idempotent(body.id, keep_last=2).to("x")
    result = through(route, of(1, 2, 3, 1, 4, 5, 1), batches=[1, 1, 1, 1, 2, 1])
    # When the fourth batch begins, 2 and 3 are enough, so 1 is forgotten and let through again.
    assert ids(result) == [1, 2, 3, 1, 4, 5, 1]
    assert ids(through(route, of(1, 2, 1, 3), batches=[1, 1, 1, 1])) == [1, 2, 3]


def failing() -> Route:
    return start().idempotent(body.id).filter(body.price > 0, missing="dead").to("x")


def test_the_key_of_a_message_that_failed_is_forgotten() -> None:
    result = through(failing(), [*of(1, price=None), *of(1), *of(1)], batches=[1, 1, 1])
    assert (ids(result), len(result.dead), result.filtered) == ([1], 1, {"r.idempotent": 1})


def test_within_a_batch_the_next_one_waits_until_it_is_known_whether_the_first_failed() -> None:
    messages = [*of(1, price=None), *of(1, price=None), *of(1), *of(1)]
    waiting = through(failing(), messages, stop=False)
    assert (ids(waiting), len(waiting.dead), waiting.summary.held) == ([], 1, 3)
    result = through(failing(), messages)
    assert (ids(result), len(result.dead), result.filtered) == ([1], 2, {"r.idempotent": 1})


def test_those_that_wait_are_decided_before_the_next_arrivals() -> None:
    messages = [{"id": 1, "name": "first"}, {"id": 1, "price": 1.0, "name": "second"}, {"id": 1, "price": 1.0}]
    result = through(failing(), messages, batches=[2, 1])
    assert [found["name"] for found in arrived(result)] == ["second"]


def test_the_key_of_a_failed_message_can_be_remembered() -> None:
    route = start().idempotent(body.id, remember_failed=True).filter(body.price > 0, missing="dead").to("x")
    result = through(route, [*of(1, price=None), *of(1)], stop=False)
    assert (ids(result), len(result.dead), result.filtered) == ([], 1, {"r.idempotent": 1})


def test_a_part_that_fails_is_a_failure_of_the_message() -> None:
    route = start().idempotent(body.id).split(body.lines).filter(body.n > 0, missing="dead").to("x")
    order = {"id": 1, "lines": [{"n": 1}, {}]}
    result = through(route, [order, order], batches=[1, 1])
    assert (len(arrived(result)), len(result.dead)) == (2, 2)


def test_a_message_that_waits_further_on_has_not_failed() -> None:
    route = start().idempotent(body.id).aggregate(collect("all"), by=True, size=2).to("x")
    result = through(route, of(1, 1, 2), batches=[1, 1, 1])
    assert [[member["id"] for member in found["all"]] for found in arrived(result)] == [[1, 2]]


def test_a_key_without_a_value_is_invalid() -> None:
    result = through(start().idempotent(body.id).to("x"), [{}, {"id": 1}])
    assert why(result) == [("idempotent", "InvalidKey", "the key has no value")]
    assert through(start().idempotent(body.id, invalid="filter").to("x"), [{}]).filtered == {"r.idempotent": 1}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keep": -1}, "keep=-1 is not a length of time"),
        ({"keep_last": 0}, "keep_last=0 is not a whole number from 1 up"),
        ({"duplicates": ""}, "is not a channel name"),
        ({"invalid": "hold"}, "invalid='hold' is not a policy"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(PenstockError, match=said):
        start().idempotent(body.id, **settings)


def test_a_key_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(PenstockError, match="a key is one value, and no DOUBLE, but price is DOUBLE"):
        _ = app(start().idempotent(body.price).to("x")).plan

from __future__ import annotations

import pytest

from penstock import Message, body
from penstock.errors import PenstockError
from penstock.testing import Result
from tests.patterns.apps import app, start, through, why

MANY = [{"id": number, "name": f"n{number % 7}"} for number in range(600)]


def counts(result: Result) -> dict[str, int]:
    return {channel: len(messages) for channel, messages in result.channels.items()}


def test_round_robin_takes_turns() -> None:
    result = through(start().balance("a", "b", "c"), MANY[:7])
    assert [message["id"] for message in result.bodies("a")] == [0, 3, 6]
    assert counts(result) == {"a": 3, "b": 2, "c": 2}


def test_weights_are_shares() -> None:
    assert counts(through(start().balance("a", "b", weights=[1, 5]), MANY)) == {"a": 100, "b": 500}


def test_sticky_keys_stay_where_they_are() -> None:
    route = start().balance("a", "b", "c", sticky=body.name)
    result = through(route, MANY)
    homes = {body["name"]: channel for channel in "abc" for body in result.bodies(channel)}
    for channel in "abc":
        mine = {name for name, home in homes.items() if home == channel}
        assert {body["name"] for body in result.bodies(channel)} == mine
    backwards = through(route, MANY[::-1])
    assert counts(backwards) == counts(result)
    assert homes == {body["name"]: channel for channel in "abc" for body in backwards.bodies(channel)}


def test_a_missing_sticky_key_is_a_dead_letter() -> None:
    result = through(start().balance("a", "b", sticky=body.name), [{"id": 1}, {"name": ""}])
    assert why(result) == [("balance", "MissingField", "the sticky key is missing")]
    assert sum(counts(result).values()) == 1


def test_random_depends_on_the_seed_and_the_id_alone() -> None:
    route = start().balance("a", "b", random_seed=1)
    named = [Message(f"m{number}", b"{}") for number in range(400)]
    forwards, backwards = through(route, named), through(route, named[::-1])
    for channel in "ab":
        assert {m.id for m in forwards.messages(channel)} == {m.id for m in backwards.messages(channel)}
    assert 150 < len(forwards.messages("a")) < 250


def test_another_seed_is_another_choice() -> None:
    named = [Message(f"m{number}", b"{}") for number in range(100, 500)]
    one, two = (through(start().balance("a", "b", random_seed=seed), named) for seed in (1, 2))
    both = {m.id for m in one.messages("a")} & {m.id for m in two.messages("a")}
    assert 60 < len(both) < 140


def test_parts_of_a_split_message_take_turns_by_their_index() -> None:
    result = through(start().split(body.tags).balance("a", "b"), [{"tags": ["p", "q", "r"]}, {"tags": ["s"]}])
    assert result.bodies("a") == [{"value": "p"}, {"value": "r"}, {"value": "s"}]
    assert result.bodies("b") == [{"value": "q"}]


@pytest.mark.parametrize(
    ("targets", "options", "text"),
    [
        (("a",), {}, "a load balancer needs at least two channels"),
        (("a", "b"), {"weights": [1]}, r"weights=\[1\] does not fit 2 channels"),
        (("a", "b"), {"weights": [1, 0]}, r"weights=\[1, 0\] does not fit 2 channels"),
        (("a", "b"), {"weights": [1, 1], "random_seed": 1}, "are different strategies"),
    ],
)
def test_settings_that_do_not_fit_are_refused(targets: tuple[str, ...], options: dict[str, object], text: str) -> None:
    with pytest.raises(PenstockError, match=text):
        start().balance(*targets, **options)  # type: ignore[arg-type]


def test_a_sticky_key_is_text_an_integer_or_a_boolean() -> None:
    with pytest.raises(PenstockError, match="a sticky key is one value, and no DOUBLE, but this is DOUBLE"):
        _ = app(start().balance("a", "b", sticky=body.price)).plan

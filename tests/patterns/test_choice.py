from __future__ import annotations

import pytest

from penstock import body
from penstock.errors import PenstockError
from tests.patterns.apps import start, through, why


def test_choice_takes_the_first_matching_case() -> None:
    cases = {"low": body.price < 10, "middle": body.price < 100}
    result = through(start().choice(cases, otherwise="high"), [{"price": 5}, {"price": 50}, {"price": 500}])
    assert [len(result.bodies(name)) for name in ("low", "middle", "high")] == [1, 1, 1]
    swapped = dict(reversed(cases.items()))
    result = through(start().choice(swapped, otherwise="high"), [{"price": 5}, {"price": 50}, {"price": 500}])
    assert [len(result.bodies(name)) for name in ("low", "middle", "high")] == [0, 2, 1]


def test_choice_can_name_a_channel_twice() -> None:
    route = start().choice([("a", body.id == 1), ("b", body.id == 2), ("a", body.id == 3)], otherwise="b")
    result = through(route, [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}])
    assert result.bodies("a") == [{"id": 1}, {"id": 3}]


def test_a_missing_field_is_false_unless_it_kills() -> None:
    cases = {"low": body.price < 10, "any": body.id > 0}
    result = through(start().choice(cases, otherwise="rest"), [{"id": 1}, {}])
    assert (result.bodies("any"), result.bodies("rest")) == ([{"id": 1}], [{}])
    result = through(start().choice(cases, otherwise="rest", missing="dead"), [{"price": 5}, {"id": 1}, {"price": 50}])
    assert result.bodies("low") == [{"price": 5}]
    reason = "the condition reads {}, and a value is missing"
    assert why(result) == [("choice", "MissingField", reason.format(name)) for name in ("price", "id")]


def test_choice_needs_a_case_and_a_known_policy() -> None:
    with pytest.raises(PenstockError, match="a choice needs at least one case"):
        start().choice({}, otherwise="x")
    with pytest.raises(PenstockError, match="missing='drop' is not a policy"):
        start().choice({"a": body.ok}, otherwise="x", missing="drop")

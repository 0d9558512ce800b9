from __future__ import annotations

import pytest

from penstock import Route, body
from penstock.errors import PenstockError
from penstock.summary import Step
from penstock.testing import replay, run
from tests.patterns.apps import app, start, through, why


def test_every_channel_gets_its_own_copy() -> None:
    routes = [start().multicast("a", "b"), Route("change", "a").enrich({"name": "changed"}).to("c")]
    result = run(app(*routes), [{"name": "same"}])
    assert (result.bodies("c"), result.bodies("b")) == ([{"name": "changed"}], [{"name": "same"}])
    assert (result.summary.copied, result.summary.conserved) == (1, True)
    assert [message.id for message in (*result.messages("b"), *result.messages("c"))] == ["r/0/0"] * 2


def test_a_branch_that_fails_does_not_stop_the_others() -> None:
    routes = [start().multicast("a", "b"), Route("strict", "a").filter(body.id > 0, missing="dead").to("c")]
    result = run(app(*routes), [{"name": "x"}])
    assert (len(result.dead), len(result.messages("b")), len(result.messages("c"))) == (1, 1, 0)


def test_one_channel_is_enough_and_none_is_not() -> None:
    assert through(start().multicast("only"), [{}]).summary.copied == 0
    for wrong in ((), ("a", "a")):
        with pytest.raises(PenstockError, match="name each channel once, at least one"):
            start().multicast(*wrong)


def stopping(*branches: str) -> tuple[Route, ...]:
    """Branches called strict fail for a message without an id."""
    strict = [Route(name, name).filter(body.id > 0, missing="dead").to(f"{name} out") for name in branches]
    return start().multicast("first", "strict", "last", stop_on_exception=True), *strict


def test_the_copies_after_one_that_fails_are_stopped() -> None:
    result = through(stopping("strict"), [{"id": 1}, {}])
    delivered = [[message.id for message in result.messages(name)] for name in ("first", "strict out", "last")]
    assert delivered == [["r/0/0", "r/0/1"], ["r/0/0"], ["r/0/0"]]
    assert why(result)[1] == (
        "multicast",
        "Stopped",
        "copy 2 of 3 failed first (MissingField at strict.filter: the condition reads id, and a value is missing), "
        "and r.multicast stops on exception",
    )
    assert result.summary.steps["r.multicast"] == Step(received=2, sent=5, dead=1, copied=4)


def test_a_failure_of_the_last_copy_stops_nobody() -> None:
    result = through(stopping("last"), [{}])
    assert [len(result.messages(name)) for name in ("first", "strict")] == [1, 1]
    assert [letter.step for letter in result.dead] == ["filter"]


def test_a_stopped_copy_cannot_go_on_where_it_was_made() -> None:
    letters = through(stopping("strict"), [{}]).dead
    with pytest.raises(PenstockError, match="a copy that was stopped does not say for which channel it was"):
        replay(app(*stopping("strict")), letters)
    assert len(replay(app(*stopping("strict")), letters, at="start").dead) == 2


@pytest.mark.parametrize("value", ["no", 1, None])
def test_stop_on_exception_is_true_or_false(value: object) -> None:
    with pytest.raises(PenstockError, match=r"stop_on_exception=.* is neither true nor false"):
        start().multicast("a", "b", stop_on_exception=value)  # type: ignore[arg-type]

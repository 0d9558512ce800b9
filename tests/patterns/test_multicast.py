from __future__ import annotations

import pytest

from penstock import Route, body
from penstock.errors import PenstockError
from penstock.testing import run
from tests.patterns.apps import app, start, through


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

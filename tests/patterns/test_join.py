from __future__ import annotations

import pytest

from penstock import App, Json, Memory, Route, body, join
from penstock.errors import PenstockError
from penstock.testing import run


def test_several_channels_become_one_and_nothing_is_copied() -> None:
    routes = [
        Route("one", Memory((), Json("id BIGINT, a STRING"))).to("x"),
        Route("two", Memory((), Json("id BIGINT, b DOUBLE"))).to("y"),
        Route("both", join("x", "y")).filter(body.id > 1).to("z"),
    ]
    joined = App("join", *routes, sinks={"z": Memory()}, dead_letters=Memory())
    result = run(joined, {"one": [{"id": 1, "a": "p"}, {"id": 2, "a": "q"}], "two": [{"id": 3, "b": 0.5}]})
    assert sorted(body["id"] for body in result.bodies("z")) == [2, 3]
    assert (result.summary.copied, result.filtered) == (0, {"both.filter": 1})


def test_join_names_each_channel_once() -> None:
    for wrong in (("a",), ("a", "a")):
        with pytest.raises(PenstockError, match="name at least two channels, each once"):
            join(*wrong)

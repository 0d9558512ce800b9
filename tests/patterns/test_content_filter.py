from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from tests.patterns.apps import app, start, through

BODY = {"id": 1, "name": "n", "who": {"name": "w", "home": {"city": "Rome", "zip": 5}}, "unknown": "gone"}


def test_kept_fields_stay_with_their_nesting() -> None:
    result = through(start().keep("id", "who.home.city").to("x"), [BODY, {"who": None}, {}])
    assert result.bodies("x") == [{"id": 1, "who": {"home": {"city": "Rome"}}}, {}, {}]


def test_dropped_fields_go_at_any_depth() -> None:
    result = through(start().drop("id", "who.home.city", "who.name").to("x"), [BODY])
    assert result.bodies("x") == [{"name": "n", "who": {"home": {"zip": 5}}}]


def test_values_that_the_schema_does_not_know_are_not_kept() -> None:
    assert "unknown" not in through(start().drop("id").to("x"), [BODY]).bodies("x")[0]


def test_a_filter_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(PenstockError, match="either keeps fields or drops fields"):
        start().keep()
    with pytest.raises(PenstockError, match="the body has no field 'nme'"):
        _ = app(start().keep("nme").to("x")).plan
    with pytest.raises(PenstockError, match="leaves nothing of the body"):
        _ = app(start().keep("id").drop("id").to("x")).plan

"""The small ends: rate, void, console."""

from __future__ import annotations

import pytest

from penstock import Console, Json, Rate, Text, Void
from penstock.errors import PenstockError


def test_a_rate_counts_unless_it_is_told_what_to_say() -> None:
    assert Rate().body_format == Json("value BIGINT")
    assert Rate().message(7) == b'{"value": 7}'
    assert Rate(message=lambda number: b"x").body_format == Text()
    assert Rate(message=lambda number: b"{}", format=Json("a STRING")).body_format == Json("a STRING")
    assert str(Rate(per_second=5)) == "rate 5/s"


def test_a_rate_is_positive() -> None:
    for wrong in ({"per_second": 0}, {"count": -1}):
        with pytest.raises(PenstockError, match="both must be positive"):
            Rate(**wrong)


def test_sinks_say_what_a_replay_leaves() -> None:
    assert Void().guarantee == "nothing is kept"
    assert Console().guarantee == "the batch that a crash interrupts may not be printed"

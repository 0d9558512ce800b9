from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.patterns.duration import duration_text, seconds


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (5, 5.0), (0.25, 0.25), ("500 ms", 0.5), ("5 s", 5.0), ("5s", 5.0), ("1 second", 1.0), ("1.5 seconds", 1.5),
        ("5 minutes", 300.0), ("1 minute", 60.0), ("2 min", 120.0), ("1 hour", 3600.0), ("2 days", 172_800.0),
        (" 3 H ", 10_800.0), ("10 milliseconds", 0.01),
    ],
)  # fmt: skip
def test_ways_to_write_a_length_of_time(written: object, meant: float) -> None:
    assert seconds(written, "timeout") == meant


@pytest.mark.parametrize(
    "wrong", [0, -1, "0 s", "-5 s", "five s", "5", "5 weeks", "", True, None, float("nan"), float("inf"), "1e999 s", []]
)
def test_what_is_no_length_of_time_is_refused(wrong: object) -> None:
    with pytest.raises(PenstockError, match=r"timeout=.* is not a length of time"):
        seconds(wrong, "timeout")


def test_zero_is_allowed_where_it_means_at_once() -> None:
    assert seconds(0, "delay", zero=True) == seconds("0 s", "delay", zero=True) == 0.0


@pytest.mark.parametrize(
    ("length", "text"), [(0.5, "500 ms"), (1.0, "1 s"), (90.0, "90 s"), (60.0, "1 minute"), (7200.0, "2 hours"),
                         (86_400.0, "1 day"), (1.5, "1500 ms"), (0.0001, "0.0001 s"), (1e-7, "1e-07 s")]
)  # fmt: skip
def test_a_length_of_time_as_text(length: float, text: str) -> None:
    assert duration_text(length) == text


@given(st.floats(1e-9, 1e12))
def test_the_text_reads_back_to_the_same_length(length: float) -> None:
    assert seconds(duration_text(length), "x") == length

"""Numbers that people write are numbers, or refused."""

from __future__ import annotations

import pytest

from penstock.log.numbers import whole_number


@pytest.mark.parametrize("text", ["", "²", "٣", "-1", "+1", "1.0", "1e3", "9" * 5000, " 1"])
def test_what_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None


def test_whole_numbers() -> None:
    assert [whole_number(text) for text in ("0", "007", "9" * 18)] == [0, 7, 10**18 - 1]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iregexp_check import check

from penstock.expr.iregexp import read


@pytest.mark.parametrize(
    "pattern",
    ["", "a|b|", "()", "[0-9]{10}", "a{2,10}", "a{10,}", "a{0}", "[-a]", "[a-]", "[^-]", "[a-z-]", r"[\-\]]", r"\p{Lu}",
     r"[^\P{C}]", "^a$", "a\nb", r"\n\(\\", "日本{2}", "[&&]", "😀", "[^^]"],
)  # fmt: skip
def test_a_pattern_of_the_rfc_is_read(pattern: str) -> None:
    assert read(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    ["*a", "a**", "(a", "a)", "[a", "a]", "{2}", "a{", "a{,2}", "a{-1}", r"\d", r"\w", r"\$", r"\p{Cs}", r"\pL",
     "(?:a)", "(?=a)", r"\1", "[[:alpha:]]", "[]", "[a--b]", "[a-c-e]", "a|*", "(*)", "\\", r"\b",
     "\ud800", "[a\ud800]"],
)  # fmt: skip
def test_a_pattern_beyond_the_rfc_is_not_read(pattern: str) -> None:
    assert read(pattern) is None


@given(st.text(alphabet="ab^$.-[]()\\|*+?{}12,npPL", max_size=8))
def test_it_agrees_with_another_reader(pattern: str) -> None:
    """Which takes no repetition of more than one digit."""
    if any(token.text.strip("{},").replace(",", "").isdigit() and len(token.text) > 3 for token in read(pattern) or ()
           if token.kind == "quantifier"):  # fmt: skip
        return
    assert (read(pattern) is not None) == check(pattern)

"""Random regular expressions of RFC 9485, and texts that they may match."""

from __future__ import annotations

from hypothesis import strategies as st

_CHARACTERS = st.sampled_from(["a", "b", "é", "😀", ".", r"\.", r"\n", "-", " ", r"\(", "1", "&", "~"])
_CLASSES = st.sampled_from(
    ["[ab]", "[^a]", "[a-é]", "[^😀b]", r"[\-1]", "[a&&b]", r"\p{L}", r"\P{Lu}", r"[\p{Nd}b]", r"[^\p{L}]", "[~|]"]
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    many = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        inner.map(lambda one: f"({one})"),
        st.tuples(inner, many).map(lambda two: f"({two[0]}){two[1]}"),
        st.tuples(_CHARACTERS | _CLASSES, many).map("".join),
    )


PATTERNS = st.recursive(_CHARACTERS | _CLASSES, _grown, max_leaves=6)
TEXTS = st.text(alphabet="aabbé😀.-1 (&~|\nA", max_size=12)

"""JSON as `json.dumps` writes it, made of compact JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.spelling import COMPACT, MIXED, SPACED, respelled, with_spaces

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(['a,b:"c"', "\\", '\\"', ", "]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_spaces_are_those_of_json_dumps(value: object) -> None:
    for ascii_only in (True, False):
        compact = json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only).encode()
        assert with_spaces(compact) == json.dumps(value, ensure_ascii=ascii_only).encode()


def test_pieces_of_a_message_and_lines_are_respelled() -> None:
    pieces = [b'{"a":1', b',"b":[', b'"x,y"', b",2]}\n"]
    assert b"".join(respelled(SPACED)(pieces)) == b'{"a": 1, "b": ["x,y", 2]}\n'
    assert b"".join(respelled(COMPACT)(pieces)) == b"".join(pieces)
    lines = [b'{"a":1}\n{"a":2}\n{"a":3}\n', b'{"a":4}\n']
    assert b"".join(respelled(MIXED)(lines)) == b'{"a": 1}\n{"a":2}\n{"a": 3}\n{"a":4}\n'

"""Files of JSON are lines, one array or one document, and everybody finds the same."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.formats import jsonfiles
from penstock.formats.jsonfiles import ARRAY, DOCUMENT, LINES, detected, document, elements, first_body

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab"\\[]{},:\n é'), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def kind(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return detected(partial(io.BytesIO, raw))


def parts(raw: bytes, most: int = 1000) -> list[bytes]:
    return [one for some in elements(io.BytesIO(raw), most) for one in some]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"id": 1}\n{"id": 2}\n', LINES),
        ('[1, 2]\n[3, 4]\n', LINES),
        ('[{"id": 1}, {"id": 2}]', LINES),
        ("", LINES),
        ("{", LINES),
        ('{\n  "id": 1\n}\n', DOCUMENT),
        ('\ufeff\n{\r\n  "a": [{"b": "}{"}]\r\n}\r\n\r\n', DOCUMENT),
        ('{\n}\n', DOCUMENT),
        ('[\n  {"id": 1},\n  {"id": 2}\n]\n', ARRAY),
        ('[\n{"id": 1}\n]', ARRAY),
        ('[{\n  "id": 1\n}, {\n  "id": 2\n}]', ARRAY),
        ("[\n]\n", ARRAY),
        ("[\n1,\n2\n]", ARRAY),
        # An element that is broken is a matter of its own.
        ('[\n{"id":1},\n{id:2},\n{"id":3}\n]', ARRAY),
        ('[\n{id:1},\n{"id":2}\n]', ARRAY),
        ('[\n  {\n "id":1\n  },\n  {\n "n": "a"b"\n  }\n]', ARRAY),
        ('[\n{"id":1},\n{"id":2}\n{"id":3}\n]', ARRAY),
        ('[\n"a"\n"b"\n', LINES),
        # A first line that is broken, or more than one value: never one big message.
        ('{\n{"id": 2}\n{"id": 3}\n', LINES),
        ('[\n{"id": 2}\n{"id": 3}\n', LINES),
        ('{"id": 1,\n{"id": 2}\n', LINES),
        ('{\n  "id": 1\n}\n{\n  "id": 2\n}\n', LINES),
        ('{\n"id": 1\n{"id": 2}\n', LINES),
        ('{\n  "id": 1,\n', LINES),
    ],
)  # fmt: skip
def test_a_file_tells_by_its_beginning_what_it_is(text: str, expected: str) -> None:
    assert kind(text) == expected


@given(VALUES.filter(lambda value: isinstance(value, (dict, list)) and value), st.sampled_from([1, 2, "\t"]))
def test_whatever_is_printed_over_several_lines_is_recognised(value: Any, indent: int | str) -> None:
    assert kind(json.dumps(value, indent=indent)) == (ARRAY if isinstance(value, list) else DOCUMENT)


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_lines_stay_lines(values: list[Any]) -> None:
    assert kind("".join(json.dumps(value) + "\n" for value in values)) == LINES


@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 1, 3]), st.integers(1, 9), st.booleans())
def test_elements_have_their_own_bytes_wherever_blocks_end(
    values: list[Any], indent: int | None, size: int, ascii_only: bool
) -> None:
    written = [json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode() for value in values]
    raw = b" [ " + b" ,\n".join(written) + b" ] \n"
    before, jsonfiles.BLOCK_BYTES = jsonfiles.BLOCK_BYTES, size
    try:
        assert parts(raw) == written
    finally:
        jsonfiles.BLOCK_BYTES = before


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"[]", []),
        (b" [ \n ] ", []),
        (b"", []),
        (b'[1, {"a": 2', [b"1", b'{"a": 2']),
        (b"[1, 2", [b"1", b"2", b""]),
        (b"[1,", [b"1", b""]),
        (b"[", [b""]),
        (b"[1,,2]", [b"1", b"", b"2"]),
        (b"[1,2,]", [b"1", b"2", b""]),
        (b'[1, "un]closed, 2]', [b"1", b'"un]closed, 2]']),
        (b"[1] [2] x", [b"1", b"[2] x"]),
        (b"[1, 2}", [b"1", b"2", b"}"]),
        (b'{"a": 1}\n{"a": 2}', [b'{"a": 1}\n{"a": 2}']),
    ],
)
def test_nothing_is_lost_of_what_is_no_array(raw: bytes, expected: list[bytes]) -> None:
    assert parts(raw) == expected


def test_an_element_that_is_too_long_is_cut_and_the_others_are_whole() -> None:
    assert parts(b'[1, "' + b"x" * 50 + b'", 2]', most=10) == [b"1", b'"' + b"x" * 9, b"2"]


def test_a_document_is_all_of_the_file() -> None:
    assert document(io.BytesIO(b'\xef\xbb\xbf\n{\n "a": 1\n}\n\n')) == b'{\n "a": 1\n}'


def test_the_first_body_is_what_a_run_would_read_first() -> None:
    def first(text: bytes, records: str | None = None) -> bytes | None:
        return first_body(partial(io.BytesIO, text), records)

    assert first(b'\n{"a": 1}\r\n{"a": 2}\n') == b'{"a": 1}'
    assert first(b'{\n "a": 1\n}\n') == b'{\n "a": 1\n}'
    assert first(b'[{"a": 1}, {"a": 2}]') == b'[{"a": 1}, {"a": 2}]'
    assert first(b'[{"a": 1}, {"a": 2}]', ARRAY) == b'{"a": 1}'
    assert [first(b""), first(b"[\n]\n"), first(b"\n", DOCUMENT)] == [None, None, None]

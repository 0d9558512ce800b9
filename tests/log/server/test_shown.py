"""Messages as people read them: whatever was stored can be shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.log.frame import Frame
from penstock.log.server.shown import json_lines


def shown(value: bytes, key: bytes | None = None, headers: bytes | None = None) -> dict[str, Any]:
    frame = Frame.pack([value], keys=None if key is None else [key], headers=None if headers is None else [headers])
    (line,) = b"".join(json_lines(frame)).splitlines()
    found: dict[str, Any] = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    return found


@given(st.binary(), st.none() | st.binary(), st.none() | st.binary())
@example(b'"\\ud800"', b'"\\udfff"', b'{"a": "\\ud800"}')
@example(b'{"\\udfff": 1}', None, b'{"\\ud800": 1}')
@example(b"1e999", None, b'{"a": 1e999}')
@example(b"1" * 5000, None, None)
def test_every_message_is_one_line_of_json(value: bytes, key: bytes | None, headers: bytes | None) -> None:
    assert len(shown(value, key, headers).keys() & {"value", "text", "base64"}) == 1


def test_half_a_character_is_shown_as_it_was_written() -> None:
    assert shown(b'{"name": "\\ud800"}')["value"] == {"name": "\ud800"}


def test_a_number_that_json_cannot_say_is_text() -> None:
    assert shown(b'{"total": 1e999}')["text"] == '{"total": 1e999}'


@pytest.mark.parametrize("depth", range(900, 1100, 5))
def test_what_is_too_deep_is_text(depth: int) -> None:
    raw = b"[" * depth + b"]" * depth
    found = shown(raw)
    assert "value" in found or found["text"] == raw.decode()

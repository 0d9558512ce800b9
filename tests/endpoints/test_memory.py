"""Lists as messages."""

from __future__ import annotations

import pytest

from penstock import Json, Memory, Message, Text
from penstock.endpoints.memory import as_messages
from penstock.errors import PenstockError
from penstock.message import Position


def test_bytes_text_dicts_and_messages_are_messages() -> None:
    own = Message("own", b"x", headers={"h": "1"}, attachments={"a": b"\x00"})
    messages = as_messages([b"raw", "grüße", {"name": "Zoë"}, own])
    assert [message.raw for message in messages] == [b"raw", "grüße".encode(), '{"name": "Zoë"}'.encode(), b"x"]
    assert [message.id for message in messages] == ["memory/0/0", "memory/0/1", "memory/0/2", "own"]
    assert messages[3].position == Position("memory", 0, 3)
    assert (messages[3].headers, messages[3].attachments) == ({"h": "1"}, {"a": b"\x00"})


def test_text_that_is_not_unicode_becomes_bytes_that_are_not_utf_8() -> None:
    assert as_messages(["\ud800"])[0].raw == b"\xed\xa0\x80"


def test_anything_else_is_refused() -> None:
    with pytest.raises(PenstockError, match="5 is not a message\n  fix  give bytes, text, a dict or a Message"):
        as_messages([5])
    with pytest.raises(PenstockError, match="partitions=0: at least 1 is needed"):
        Memory((), Text(), partitions=0)


def test_a_list_without_a_format_is_text() -> None:
    assert Memory(["a"]).body_format == Text()
    assert Memory([], Json("id BIGINT")).body_format == Json("id BIGINT")

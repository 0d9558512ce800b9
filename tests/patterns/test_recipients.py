from __future__ import annotations

import pytest

from penstock import Message, Route, body, header
from penstock.errors import PenstockError
from tests.patterns.apps import app, start, through, why


def test_a_message_goes_to_all_it_names_once_each() -> None:
    route = start().recipients(body.tags, known=["a", "b", "c"])
    result = through(route, [{"tags": ["a", "b", "a", " a "]}, {"tags": ["c"]}])
    assert [len(result.messages(channel)) for channel in "abc"] == [1, 1, 1]
    assert result.summary.copied == 1


def test_an_unknown_recipient_is_a_dead_letter_and_the_known_ones_get_theirs() -> None:
    result = through(start().recipients(body.name, known=["a", "b"]), [{"name": "a, zebra ,b"}])
    assert [len(result.messages(channel)) for channel in "ab"] == [1, 1]
    assert why(result) == [("recipients", "UnknownRecipient", "no channel is known as 'zebra'")]
    assert result.summary.copied == 2


def test_a_message_that_names_nobody_is_a_dead_letter() -> None:
    result = through(start().recipients(body.name, known=["a"]), [{}, {"name": ""}, {"name": " , "}])
    assert why(result) == [("recipients", "UnknownRecipient", "the message names no recipient")] * 3


def test_recipients_come_from_a_header_with_its_own_separator() -> None:
    route = start().recipients(header["to"], known=["a", "b"], separator=";")
    result = through(route, [Message("m", b"{}", headers={"to": "b;a"})])
    assert [len(result.messages(channel)) for channel in "ab"] == [1, 1]


def test_recipients_are_text_and_some_are_known() -> None:
    with pytest.raises(PenstockError, match="recipients are text or an array of text, not BIGINT"):
        _ = app(start().recipients(body.id, known=["a"])).plan
    with pytest.raises(PenstockError, match="a recipient list needs the channels it may send to"):
        start().recipients(body.name, known=[])


def test_recipients_after_one_that_fails_are_stopped_in_the_order_in_which_they_are_named() -> None:
    route = start().recipients(body.tags, known=["a", "b", "c"], stop_on_exception=True)
    strict = Route("strict", "b").filter(body.id > 0, missing="dead").to("x")
    result = through((route, strict), [{"tags": ["c", "b", "a", "z"]}, {"tags": ["z", "a"]}, {"tags": ["a", "c"]}])
    delivered = [[message.id for message in result.messages(name)] for name in "axc"]
    assert delivered == [["r/0/2"], [], ["r/0/0", "r/0/2"]]
    dead = [(letter.message.id, letter.step, letter.error) for letter in result.dead]
    assert dead == [
        ("r/0/0", "filter", "MissingField"), ("r/0/0", "recipients", "Stopped"), ("r/0/0", "recipients", "Stopped"),
        ("r/0/1", "recipients", "UnknownRecipient"), ("r/0/1", "recipients", "Stopped"),
    ]  # fmt: skip
    assert why(result)[-1][2] == (
        "copy 1 of 2 failed first (UnknownRecipient at r.recipients: no channel is known as 'z'), "
        "and r.recipients stops on exception"
    )

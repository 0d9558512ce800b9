"""Requests and replies, as bytes and back."""

from __future__ import annotations

import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.log.wire import requests
from penstock.log.wire.errors import _CLASSES, Number, ServerError, error_of, number_of


@settings(deadline=None)
@given(st.data())
def test_every_request_and_reply_comes_back_as_it_was(data: st.DataObject) -> None:
    for union, read in ((requests.Request, requests.request), (requests.Reply, requests.reply)):
        kind = data.draw(st.sampled_from(typing.get_args(union)))
        said = data.draw(st.builds(kind, **{
            name: strategy(hint) for name, hint in typing.get_type_hints(kind).items() if name != "values"
        } | ({"values": st.just({"a": 1})} if kind is requests.StatisticsAre else {})))  # fmt: skip
        assert read(requests.written(said)) == said


def strategy(hint: object) -> st.SearchStrategy[object]:
    numbers = st.integers(0, 2**62)
    plain = {int: numbers, str: st.text(max_size=20), bool: st.booleans(), float: st.floats(0, 1e6)}
    if hint in plain:
        return plain[hint]  # type: ignore[index]
    if hint == dict[str, int]:
        return st.dictionaries(st.text(max_size=5), numbers, max_size=3)
    if hint == tuple[int, ...]:
        return st.lists(numbers, max_size=3).map(tuple)
    if hint == int | None:
        return st.none() | numbers
    assert hint == requests.Output | None, hint
    text = st.text(max_size=9)
    return st.none() | st.builds(requests.Output, text, st.lists(st.tuples(text, text), max_size=2).map(tuple), text)


@pytest.mark.parametrize("noise", [b"", b"\xc1", b"\x80", b"\x81\xa4type\xa4Nope", requests.written(requests.Done())])
def test_what_is_no_request_is_refused(noise: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        requests.request(noise)


def test_a_field_of_a_later_version_is_skipped() -> None:
    later = msgspec.msgpack.encode({"type": "AskEnds", "topic": "a", "partition": 1, "shade": "blue"})
    assert requests.request(later) == requests.AskEnds("a", 1)


def test_every_error_has_a_number_that_gives_it_back() -> None:
    for kind, number in _CLASSES:
        made = error_of(number, "what", "fix")
        assert number_of(kind("what")) == number
        assert number_of(made) == number, kind
        assert (made.what, made.fix) == ("what", "fix")


def test_an_unknown_number_is_a_failure_of_the_server() -> None:
    assert type(error_of(4711, "what")) is ServerError
    assert number_of(ValueError()) is Number.INTERNAL

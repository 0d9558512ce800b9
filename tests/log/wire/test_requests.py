"""Requests and replies, as bytes and back."""

from __future__ import annotations

import math
import typing
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.log.wire import requests
from penstock.log.wire.errors import _CLASSES, Number, ServerError, error_of, number_of
from penstock.log.wire.tcp import NotAFrame


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
    if hint == tuple[str, ...]:
        return st.lists(st.text(max_size=20), max_size=3).map(tuple)
    if hint == tuple[str, int] | None:
        return st.none() | st.tuples(st.text(max_size=20), numbers)
    assert hint == requests.Output | None, hint
    text = st.text(max_size=9)
    return st.none() | st.builds(requests.Output, text, st.lists(st.tuples(text, text), max_size=2).map(tuple), text)


NOISE = [
    b"", b"\xc1", b"\x80", b"\x81\xa4type\xa4Nope", b"\x81\xa4type\xa5\xff\xff\xff\xff\xff",
    b"\x82\xa4type\xa5Hello\xa5token\xa2\xff\xfe", b"\x82\xa4type\xa6Topics\xa1a" + b"\x91" * 60_000,
]  # fmt: skip


@pytest.mark.parametrize("noise", [*NOISE, requests.written(requests.Done())])
def test_what_is_no_request_is_refused(noise: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        requests.request(noise)


@pytest.mark.parametrize(("name", "value"), [
    ("wait", math.nan), ("wait", math.inf), ("wait", -0.1), ("wait", 1e300), ("partition", -1), ("partition", 2**63),
    ("offset", -1), ("offset", 2**63), ("most_bytes", -1), ("most_bytes", 2**64 - 1), ("most_messages", -5),
])  # fmt: skip
def test_numbers_that_cannot_be_meant_are_refused(name: str, value: float) -> None:
    said = {"type": "Pull", "topic": "orders", "partition": 0, "offset": 0} | {name: value}
    with pytest.raises(msgspec.MsgspecError, match=name):
        requests.request(msgspec.msgpack.encode(said))


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 255))
def test_whatever_comes_is_a_request_or_none(noise: bytes, place: int, byte: int) -> None:
    changed = bytearray(requests.written(requests.Pull("orders", 1, 2, output=requests.Output("a < 1", (("a", "b"),)))))
    changed[place % len(changed)] = byte
    for head in (noise, bytes(changed)):
        with suppress(msgspec.MsgspecError):
            requests.request(head)


@pytest.mark.parametrize("noise", [*NOISE, requests.written(requests.Topics())])
def test_what_is_no_reply_is_no_frame_of_the_protocol(noise: bytes) -> None:
    with pytest.raises(NotAFrame, match="this is no reply"):
        requests.reply(noise)


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

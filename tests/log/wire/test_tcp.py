"""Frames of TCP, cut and damaged in every way."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.log.wire import tcp

frames = st.tuples(st.integers(0, 2**32 - 1), st.binary(min_size=1, max_size=40), st.binary(max_size=60))


def packed(number: int, head: bytes, bulk: bytes) -> bytes:
    return b"".join(tcp.pack(number, head, bulk))


@settings(deadline=None)
@given(st.lists(frames, max_size=5), st.lists(st.integers(0, 500), max_size=8))
def test_a_stream_gives_the_frames_however_it_is_cut(sent: list[tuple[int, bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(packed(*frame) for frame in sent)
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    reader, found = tcp.Reader(), []
    for start, end in itertools.pairwise(places):
        found += [(each.number, bytes(each.head), bytes(each.bulk)) for each in reader.feed(stream[start:end])]
    assert found == sent
    assert reader.held == 0


def test_a_frame_comes_whole_or_not_at_all() -> None:
    stream = packed(7, b"head", b"bulk")
    for cut in range(len(stream)):
        reader = tcp.Reader()
        assert list(reader.feed(stream[:cut])) == []
        assert reader.missing > 0
        assert [bytes(each.bulk) for each in reader.feed(stream[cut:])] == [b"bulk"]


def test_bulk_lies_at_multiples_of_eight() -> None:
    for size in range(1, 20):
        head, bulk = b"h" * size, b"b" * 8
        start = len(packed(1, head, bulk)) - len(bulk)
        assert start % 8 == 0


@pytest.mark.parametrize("length", [2**32 - 1, 1001])
def test_an_oversized_length_is_refused_before_its_bytes_arrive(length: int) -> None:
    reader = tcp.Reader(largest=1000)
    with pytest.raises(tcp.NotAFrame, match="longer than the 1,000 that are allowed") as caught:
        list(reader.feed(tcp.HEADER.pack(length, 5, 8, tcp.MARK)))
    assert caught.value.number == 5


@pytest.mark.parametrize(("length", "head"), [(16, 0), (16, 17), (4, 5), (2**20, tcp.LARGEST_HEAD + 1)])
def test_a_head_that_does_not_fit_is_refused(length: int, head: int) -> None:
    with pytest.raises(tcp.NotAFrame, match="cannot have a head of"):
        list(tcp.Reader().feed(tcp.HEADER.pack(length, 1, head, tcp.MARK)))


@pytest.mark.parametrize(("start", "name"), [(b"GET / HTTP/1.1\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00", "TLS")])
def test_other_protocols_are_named(start: bytes, name: str) -> None:
    with pytest.raises(tcp.NotAFrame, match=f"this is {name}, not the log's protocol"):
        list(tcp.Reader().feed(start))


@settings(deadline=None)
@given(st.binary(min_size=16, max_size=64))
def test_random_bytes_are_refused(noise: bytes) -> None:
    if noise[12:16] != tcp.MARK.to_bytes(4, "little"):
        with pytest.raises(tcp.NotAFrame):
            list(tcp.Reader().feed(noise))


def test_frames_before_a_bad_one_are_still_given() -> None:
    reader, found = tcp.Reader(), []
    with pytest.raises(tcp.NotAFrame):
        found.extend(each.number for each in reader.feed(packed(1, b"a", b"") + bytes(16)))
    assert found == [1]

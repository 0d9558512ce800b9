"""Frames: packed, cut, joined, parsed; and every change of a bit is noticed."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.log.errors import BadFrame
from penstock.log.frame import HEADER_BYTES, LARGEST_MESSAGE, NOBODY, Frame, Header, Run

Message = tuple[bytes, bytes | None, bytes | None, int]
messages = st.lists(
    st.tuples(
        st.binary(max_size=20),
        st.none() | st.binary(max_size=9),
        st.none() | st.just(b'{"a":1}'),
        st.integers(0, 3) | st.integers(-(2**62), 2**62),
    ),
    min_size=1,
    max_size=30,
)


def packed(rows: list[Message], base: int = 0, **producer: int) -> Frame:
    values, keys, headers, times = (list(column) for column in zip(*rows, strict=True))
    return Frame.pack(
        values,
        keys=None if not any(key is not None for key in keys) else keys,
        headers=None if not any(header is not None for header in headers) else headers,
        times=times,
        base=base,
        **producer,
    )


def rows(frame: Frame) -> list[Message]:
    columns: list[list[Any]] = [frame.values.to_pylist(), frame.keys.to_pylist(), frame.headers.to_pylist()]
    return list(zip(*columns, frame.times.tolist(), strict=True))


@settings(deadline=None)
@given(messages, st.integers(0, 2**40))
def test_a_frame_is_what_was_packed(given: list[Message], base: int) -> None:
    frame = Frame.parse(bytes(packed(given, base).data))
    assert rows(frame) == given
    assert frame.offsets.tolist() == list(range(base, base + len(given)))
    assert (frame.first, frame.next, frame.bytes % 8) == (base, base + len(given), 0)
    assert (frame.header.earliest, frame.header.latest) == (min(r[3] for r in given), max(r[3] for r in given))
    frame.to_arrow().validate(full=True)


@settings(deadline=None)
@given(messages, st.data())
def test_a_slice_has_the_messages_between(given: list[Message], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(given) - 1))
    stop = data.draw(st.integers(start + 1, len(given)))
    piece = packed(given, 7, producer=5, sequence=100).slice(start, stop)
    assert rows(Frame.parse(bytes(piece.data))) == given[start:stop]
    assert (piece.first, piece.next) == (7 + start, 7 + stop)
    assert piece.runs == [Run(5, 100 + start, 0, stop - start)]


@settings(deadline=None)
@given(st.lists(messages, min_size=1, max_size=6), st.data())
def test_joined_frames_are_one_after_the_other(given: list[list[Message]], data: st.DataObject) -> None:
    frames, base, runs = [], 3, []
    for number, part in enumerate(given):
        producer = data.draw(st.sampled_from([NOBODY, 1, 2]))
        frames.append(packed(part, base, producer=producer, sequence=1000 * number))
        base += len(part)
        runs += [(producer, 1000 * number + place) for place in range(len(part))]
    joined = Frame.parse(bytes(Frame.join(frames).data))
    everything = [row for part in given for row in part]
    assert rows(joined) == everything
    assert (joined.first, joined.next) == (3, base)
    assert _numbered(joined.runs) == [run if run[0] != NOBODY else (NOBODY, 0) for run in runs]
    middle = joined.slice(len(everything) // 2, len(everything))
    assert rows(Frame.parse(bytes(middle.data))) == everything[len(everything) // 2 :]
    assert _numbered(middle.runs) == _numbered(joined.runs)[len(everything) // 2 :]


def _numbered(runs: list[Run]) -> list[tuple[int, int]]:
    return [(run.producer, run.sequence + place if run.producer != NOBODY else 0)
            for run in runs for place in range(run.messages)]  # fmt: skip


@settings(deadline=None)
@given(messages, st.lists(st.booleans(), min_size=30, max_size=30))
def test_taken_messages_keep_their_offsets(given: list[Message], chosen: list[bool]) -> None:
    mask = np.array(chosen[: len(given)])
    taken = packed(given, 50).take(mask)
    if not mask.any():
        assert taken is None
        return
    assert taken is not None
    again = Frame.parse(bytes(taken.data))
    assert rows(again) == [row for row, keep in zip(given, mask, strict=True) if keep]
    assert again.offsets.tolist() == (np.flatnonzero(mask) + 50).tolist()


@settings(deadline=None)
@given(messages, st.integers(0, 40), st.integers(1, 400), st.none() | st.integers(1, 5))
def test_within_gives_at_least_one_message_and_not_too_many(
    given: list[Message], start: int, most_bytes: int, most_messages: int | None
) -> None:
    start = min(start, len(given) - 1)
    part = packed(given, 10).within(10 + start, most_bytes, most_messages)
    assert part.first == 10 + start
    assert rows(part) == given[start : start + len(part)]
    assert len(part) >= 1
    assert most_messages is None or len(part) <= most_messages
    size = sum(len(row[0]) + len(row[1] or b"") + len(row[2] or b"") for row in rows(part))
    assert size <= most_bytes or len(part) == 1


def test_every_bit_that_changes_is_noticed() -> None:
    data = bytearray(packed([(b"one", b"k", None, 1), (b"two", None, b"{}", 2)]).data)
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            with pytest.raises(BadFrame):
                Frame.parse(data, trusted=True)
            data[place] ^= 1 << bit
    Frame.parse(data)


def test_every_cut_is_noticed() -> None:
    data = bytes(packed([(b"one", b"k", None, 1), (b"two", None, b"{}", 2)]).data)
    for size in range(len(data)):
        with pytest.raises(BadFrame):
            Frame.parse(data[:size])
    assert Frame.parse(data + b"rest").bytes == len(data)


def _forged(frame: Frame, body: bytes | None = None, **changes: int) -> bytes:
    """A frame with right checksums and wrong content, as a stranger could send it."""
    import xxhash

    content = bytes(frame.data[HEADER_BYTES:]) if body is None else body
    header: Header = frame.header._replace(body=xxhash.xxh3_64_intdigest(content), **changes)
    return header.pack() + content


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"values": 1 << 30}, "does not fit its body"),
        ({"messages": 1 << 20}, "does not fit its body"),
        ({"messages": 1}, "does not fit"),
        ({"messages": 0}, "a frame of"),
        ({"columns": 16}, "does not fit its body"),
        ({"columns": 1}, "does not fit its body"),
        ({"columns": 8}, "does not fit its body"),
        ({"runs": 3}, "does not fit its body"),
        ({"producer": -2}, "runs do not fit"),
        ({"earliest": 7}, "times do not fit"),
        ({"length": 8}, "a frame of 8 bytes"),
        ({"length": 1 << 31}, "a frame of 2147483648 bytes"),
        ({"version": 2}, "version 2"),
    ],
)
def test_a_forged_header_is_refused(changes: dict[str, int], said: str) -> None:
    frame = packed([(b"one", None, None, 5), (b"two", None, None, 5)])
    with pytest.raises(BadFrame, match=said):
        Frame.parse(_forged(frame, **changes))


@pytest.mark.parametrize("values", [[b"one"], [b"one", b"two"]])
@pytest.mark.parametrize(
    "changes",
    [
        {"base": (1 << 63) - 1}, {"base": -2}, {"producer": 5, "sequence": (1 << 63) - 1},
        {"producer": 5, "sequence": -1}, {"producer": 5, "epoch": -1}, {"producer": -5},
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_counted_on_from_are_refused(values: list[bytes], changes: dict[str, int]) -> None:
    with pytest.raises(BadFrame, match="offsets or numbers that cannot be"):
        Frame.parse(_forged(Frame.pack(values), **changes))


@pytest.mark.parametrize("run", [(5, (1 << 63) - 1, 0), (5, -1, 0), (5, 0, -1), (-5, 0, 0), (-2, 0, 0)])
def test_runs_that_cannot_be_counted_on_from_are_refused(run: tuple[int, int, int]) -> None:
    joined = Frame.join([Frame.pack([b"a"], times=[1], producer=7), Frame.pack([b"b"], times=[1], base=1, producer=8)])
    content = bytearray(joined.data[HEADER_BYTES:])
    content[-24:-4] = struct.pack("<qqi", *run)
    with pytest.raises(BadFrame, match="offsets or numbers that cannot be"):
        Frame.parse(_forged(joined, bytes(content)))


@pytest.mark.parametrize("offsets", [(0, 9, 6), (1, 3, 6), (0, -5, 6), (0, 3, 7), (0, 3, 1 << 30)])
def test_forged_offsets_are_refused(offsets: tuple[int, int, int]) -> None:
    frame = packed([(b"one", None, None, 5), (b"two", None, None, 5)])
    body = np.array(offsets, np.int32).tobytes() + bytes(frame.data[HEADER_BYTES + 12 :])
    with pytest.raises(BadFrame, match="offsets do not fit"):
        Frame.parse(_forged(frame, body))


@settings(deadline=None)
@given(st.binary(max_size=300))

def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        Frame.parse(data)


def test_arrow_arrays_are_packed_without_python_objects() -> None:
    array = pa.array([b"x", b"a", b"bc", b""], pa.binary()).slice(1)
    assert Frame.pack(array).values.to_pylist() == [b"a", b"bc", b""]
    assert Frame.pack(pa.array(["ä", "b"])).values.to_pylist() == ["ä".encode(), b"b"]


def test_the_values_of_a_frame_are_not_copied() -> None:
    frame = Frame.pack([b"a" * 100, b"b" * 50])
    start = np.frombuffer(frame.data, np.uint8).__array_interface__["data"][0]
    assert start < frame.values.buffers()[2].address < start + frame.bytes


def test_a_frame_at_another_offset_has_the_same_messages() -> None:
    frame = Frame.pack([b"a", b"b"]).at(40, 17)
    again = Frame.parse(frame.data)
    assert (again.first, again.next, again.header.durable) == (40, 42, 17)
    assert again.values.to_pylist() == [b"a", b"b"]


def test_messages_that_make_no_frame_are_refused() -> None:
    with pytest.raises(BadFrame, match="without messages"):
        Frame.pack([])
    with pytest.raises(BadFrame, match="without a value"):
        Frame.pack([b"a", None])  # type: ignore[list-item]
    with pytest.raises(BadFrame, match="not as many"):
        Frame.pack([b"a", b"b"], keys=[b"k"])
    with pytest.raises(BadFrame, match="not bytes"):
        Frame.pack([1, 2])  # type: ignore[list-item]
    with pytest.raises(BadFrame, match=f"at most {LARGEST_MESSAGE}"):
        Frame.pack([bytes(LARGEST_MESSAGE + 1)])
    with pytest.raises(BadFrame, match="make several of it"):
        Frame.pack([bytes(LARGEST_MESSAGE)] * 5)


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=12), st.integers(0, 5), st.sampled_from([NOBODY, 1])), min_size=2))
def test_single_messages_are_joined_as_others_are(given: list[tuple[bytes, int, int]]) -> None:
    frames = [Frame.pack([value], times=[time], base=9 + place, producer=producer, sequence=place)
              for place, (value, time, producer) in enumerate(given)]  # fmt: skip
    joined = Frame.parse(bytes(Frame.join(frames).data))
    assert rows(joined) == [(value, None, None, time) for value, time, _ in given]
    expected = [(producer, place if producer != NOBODY else 0) for place, (_, _, producer) in enumerate(given)]
    assert _numbered(joined.runs) == expected
    assert joined.first == 9

"""Frames of one message: the same as the general way makes them, and appended many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log import Acknowledge, Frame, Log, Settings
from penstock.log.columns import column_of
from penstock.log.errors import BadFrame, WrongSequence
from penstock.log.header import LARGEST_MESSAGE, Run, merged_runs
from penstock.log.layout import assembled, check_structure
from penstock.log.records import Receipt
from penstock.log.single import is_single, is_sound

TIMES = st.integers(0, 2**50)


@given(st.binary(max_size=40), TIMES)
def test_one_message_is_packed_as_an_array_of_one(value: bytes, moment: int) -> None:
    plain = Frame.pack([value], times=[moment], base=7, producer=3, epoch=1, sequence=9)
    array = Frame.pack(pa.array([value], pa.binary()), times=[moment], base=7, producer=3, epoch=1, sequence=9)
    assert bytes(plain.data) == bytes(array.data)
    assert is_single(plain.header)
    assert is_sound(plain.data, plain.header)


@given(st.lists(st.tuples(st.binary(max_size=20), TIMES, st.integers(-1, 2), st.integers(0, 3)), min_size=2))
def test_many_are_joined_as_columns_are(messages: list[tuple[bytes, int, int, int]]) -> None:
    frames = [Frame.pack([value], times=[moment], producer=producer, sequence=sequence)
              for value, moment, producer, sequence in messages]  # fmt: skip
    joined = Frame.of_singles(frames, base=5, durable=2)
    check_structure(joined.data, joined.header)
    times = pa.array([moment for _, moment, _, _ in messages]).to_numpy()
    runs = merged_runs([Run(producer, sequence, 0, 1) for _, _, producer, sequence in messages])
    column = column_of([value for value, *_ in messages], "value")
    data, header = assembled(column, None, None, times, runs, 5, None, 2)
    assert (bytes(joined.data), joined.header) == (bytes(data), header)


@given(st.lists(st.tuples(st.binary(max_size=20), TIMES), min_size=2), st.data(), st.sampled_from([-1, 4]))
def test_one_is_cut_out_as_columns_are(messages: list[tuple[bytes, int]], data: st.DataObject, producer: int) -> None:
    frame = Frame.pack([value for value, _ in messages], times=[moment for _, moment in messages], base=9,
                       producer=producer, epoch=2, sequence=6)  # fmt: skip
    place = data.draw(st.integers(0, len(messages) - 1))
    value, moment = messages[place]
    sequence = 6 if producer == -1 else 6 + place
    alone = Frame.pack([value], times=[moment], base=9 + place, producer=producer, epoch=2, sequence=sequence)
    assert bytes(frame.slice(place, place + 1).data) == bytes(alone.data)
    assert bytes(frame.within(9 + place, 1, 1).data) == bytes(alone.data)


def test_what_is_no_frame_of_one_message_is_refused() -> None:
    with pytest.raises(BadFrame, match="at most 16777216"):
        Frame.pack([bytes(LARGEST_MESSAGE + 1)])
    frame = Frame.pack([b"12345678"])
    header = frame.header._replace(values=16)
    with pytest.raises(BadFrame, match="does not fit its body"):
        Frame.parse(header.pack() + bytes(frame.data[len(header.pack()) :]))


def appended(log: Log, frames: Sequence[Frame], mode: Acknowledge) -> list[Future[Receipt]]:
    answers: list[Future[Receipt]] = [Future() for _ in frames]
    log.append_singles("t", 0, frames, mode, answers)
    log.ask("t", 0)
    return answers


@pytest.mark.parametrize("mode", list(Acknowledge))
@pytest.mark.parametrize("settings", [Settings(), Settings(levels=())])
def test_many_at_once_are_numbered_and_answered_one_by_one(
    tmp_path: Path, mode: Acknowledge, settings: Settings
) -> None:
    with Log(tmp_path / "log", settings) as log:
        log.create("t")
        me = log.producer()
        mine = [Frame.pack([b"%d" % n], producer=me.id, epoch=me.epoch, sequence=n) for n in range(3)]
        nobody = Frame.pack([b"x"])
        answers = appended(log, [mine[0], nobody, mine[0], mine[2], mine[1]], mode)
        found = [answer.result(60) if answer.exception(10) is None else answer.exception() for answer in answers]
        assert [(one.first, one.duplicate) for one in found if isinstance(one, Receipt)] == [
            (0, False), (1, False), (0, True), (2, False),
        ]  # fmt: skip
        assert isinstance(found[3], WrongSequence)
        assert log.ends("t", 0).next == 3
        frames = log.read("t", 0, 0).frames
        assert [value for frame in frames for value in frame.values.to_pylist()] == [b"0", b"x", b"1"]
        again = appended(log, [mine[2], nobody], mode)
        assert [answer.result(60).first for answer in again] == [3, 4]
    with Log(tmp_path / "log", settings) as log:
        assert log.ends("t", 0).next == 5
        assert appended(log, [mine[1], mine[0]], mode)[0].result(60).duplicate


def test_a_closing_log_takes_none_of_many(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    log.create("t")
    partition = log._partition("t", 0)
    log.close()
    answers: list[Future[Receipt]] = [Future(), Future()]
    assert not partition.append_singles([Frame.pack([b"a"])] * 2, Acknowledge.MEMORY, answers)
    assert not any(answer.done() for answer in answers)

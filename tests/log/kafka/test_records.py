"""Records: messages as Kafka has them, and back; what this log did not write is told apart."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.log.frame import NOBODY, Frame
from penstock.log.kafka.records import LONG, Found, frame_of, records_of


def marked(offset: int, **numbers: int) -> Found:
    mark = np.zeros(1, LONG)
    for name, value in ({"offset": offset, "time": 7, "producer": 9} | numbers).items():
        mark[name] = value
    return Found(offset, b"value", None, [("penstock", mark.tobytes())])


def test_a_frame_comes_back_from_its_records() -> None:
    frame = Frame.pack([b"a", b"b"], keys=[b"k", None], times=[1, 2], base=5, producer=9, epoch=1, sequence=3)
    found = [Found(5 + place, one.value, one.key, one.headers) for place, one in enumerate(records_of(frame, 0))]
    again = frame_of(found)
    assert again is not None
    assert bytes(again.data) == bytes(frame.data)


@pytest.mark.parametrize(
    "numbers",
    [
        {"producer": -2}, {"producer": -7}, {"sequence": (1 << 63) - 1}, {"sequence": -4}, {"epoch": -1},
        {"producer": NOBODY, "sequence": 5}, {"producer": NOBODY, "epoch": 3},
    ],
)  # fmt: skip
def test_a_mark_that_this_log_cannot_have_made_is_not_its_own(numbers: dict[str, int]) -> None:
    assert frame_of([marked(5, **numbers)]) is None
    before = frame_of([marked(4), marked(5, **numbers), marked(6, sequence=1)])
    assert before is not None
    assert (before.first, before.count) == (4, 1)
    Frame.parse(before.data)

"""Texts joined in groups: machine code and Arrow write the same bytes."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.formats import jsonlists
from penstock.formats.compiled.machinecode import MachineCode, Switch
from penstock.formats.jsonlists import join_lists


@given(texts=st.lists(st.binary(max_size=80)), random=st.randoms(use_true_random=False), offset=st.integers(0, 2))
def test_groups_are_lists_of_their_texts(code: MachineCode, texts: list[bytes], random: Random, offset: int) -> None:
    """Some groups are empty, and some arrays begin behind others in memory, or end with it."""
    inner = sorted(random.choices(range(len(texts) + 1), k=random.randrange(5)))
    ends = np.array([0, *inner, len(texts)], np.int32)
    expected = [b"[" + b",".join(texts[start:end]) + b"]}" for start, end in pairwise(ends.tolist())]
    column = pa.array([b"before"] * offset + texts, pa.binary()).slice(offset)
    for used in (None, code):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jsonlists, "SWITCH", Switch(code=used, is_hopeless=True))
            assert join_lists(column, ends, b"[", b"]}").to_pylist() == expected


def test_no_group_at_all(code: MachineCode) -> None:
    for used in (None, code):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jsonlists, "SWITCH", Switch(code=used, is_hopeless=True))
            assert len(join_lists(pa.array([], pa.binary()), np.zeros(1, np.int32), b"[", b"]")) == 0

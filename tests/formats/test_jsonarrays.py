"""Texts in several arrays, joined in groups: machine code and Arrow write the same bytes."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.formats import jsonarrays
from penstock.formats.compiled.machinecode import MachineCode, Switch
from penstock.formats.jsonarrays import Texts

CHUNKS = st.lists(st.lists(st.binary(max_size=80), max_size=6), min_size=1, max_size=4)


def padded(texts: list[bytes], offset: int) -> pa.Array:
    """A slice of an array with room behind its end."""
    ends = np.cumsum([0, *(len(text) for text in [b"x"] * offset + texts)], dtype=np.int32)
    data = pa.py_buffer(b"x" * offset + b"".join(texts) + bytes(64))
    return pa.Array.from_buffers(pa.binary(), len(texts) + offset, [None, pa.py_buffer(ends), data]).slice(offset)


@given(chunks=CHUNKS, random=st.randoms(use_true_random=False), offset=st.integers(0, 2))
def test_groups_are_arrays_of_their_texts(
    code: MachineCode, chunks: list[list[bytes]], random: Random, offset: int
) -> None:
    rows = [np.array([n for n in range(len(texts)) if random.random() < 0.7], np.int64) for texts in chunks]
    every = [texts[n] for texts, chosen in zip(chunks, rows, strict=True) for n in chosen]
    order = np.array(random.sample(range(len(every)), len(every)), np.int64)
    ends = np.unique(np.array([*random.sample(range(len(every)), len(every) // 2), len(every)], np.int64))
    ends = ends[ends > 0]
    joined = [b"[" + b",".join(every[n] for n in order[start:end]) + b"]}"
              for start, end in zip([0, *ends], ends, strict=False)]  # fmt: skip
    for used in (None, code):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jsonarrays, "SWITCH", Switch(code=used, is_hopeless=True))
            texts = Texts([padded(chunk, offset) for chunk in chunks], rows)
            assert texts.join(order, ends, b"[", b"]}").to_pylist() == joined


def test_none_at_all() -> None:
    texts = Texts([padded([], 0)], [np.empty(0, np.int64)])
    assert len(texts.join(np.empty(0, np.int64), np.empty(0, np.int64), b"[", b"]")) == 0

"""Tasks read as much as each other, neighbours together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.read import shares as module
from penstock.spark.read.shares import shares


@given(sizes=st.lists(st.integers(0, 300), max_size=40), cores=st.integers(1, 5))
def test_every_chunk_is_in_one_share_and_none_is_empty(sizes: list[int], cores: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHARE_BYTES", 100)
        chunks = list(enumerate(sizes))
        found = shares(chunks, cores, lambda one: one[1])
    assert [chunk for share in found for chunk in share] == chunks
    assert all(found)


def test_all_cores_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE_BYTES", 64)
    assert [sum(share) for share in shares([8] * 11, 2, int)] == [48, 40]
    assert [sum(share) for share in shares([8] * 45, 2, int)] == [64, 56, 64, 56, 64, 56]

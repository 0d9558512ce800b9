"""Keys are hashed as SHA-256 says, by machine code and without it."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.formats.compiled.machinecode import MachineCode, Switch
from penstock.kernel.state import hashing
from penstock.kernel.state.hashing import hashes


@given(texts=st.lists(st.text(max_size=200)), offset=st.integers(0, 2))
@example(texts=["x" * length for length in (0, 55, 56, 63, 64, 119, 120, 1000)], offset=1)
def test_a_hash_is_the_beginning_of_sha_256(code: MachineCode, texts: list[str], offset: int) -> None:
    column = pa.array(["before"] * offset + texts, pa.string()).slice(offset)
    expected = [hashlib.sha256(text.encode()).digest()[:16] for text in texts]
    for used in (None, code):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hashing, "SWITCH", Switch(code=used, is_hopeless=True))
            found = hashes(column)
        pairs = zip(found.high.tolist(), found.low.tolist(), strict=True)
        assert [high.to_bytes(8, signed=True) + low.to_bytes(8, signed=True) for high, low in pairs] == expected

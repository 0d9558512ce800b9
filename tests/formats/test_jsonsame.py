"""Bodies that are found to be as we would write them are; ordinary ones are found."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.formats import Json, Malformed, jsonsame
from penstock.formats.compiled.machinecode import MachineCode, Switch
from penstock.formats.jsonsame import same_as_written

FORMAT = Json('text STRING, `na"me` STRING, whole BIGINT, number DOUBLE, truth BOOLEAN')
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = (
    st.sampled_from(
        ["0", "0.0", "-0.0", "1.0", "10.05", "0.05", "0.5", "-0.5", "1.50", "01.5", "1e3", "1.5e3", "123456789.1234",
         "1234567890.5", "0.0001", "12.12345", "1.", ".5", "-1.25", "9007199254740993.0", "5", "null", "+1.0"]
    )
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.integers(-(10**9), 10**9).map(lambda cents: f"{cents / 100}")
)  # fmt: skip
WHOLES = st.sampled_from(["0", "-0", "00", "1.0", "1e3", "-1", "123456789012345678", "9223372036854775808", "true", ""])
VALUES = st.tuples(
    TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False)) | st.sampled_from(['"\\u0041"', "null", '"a', '"\t"']),
    TEXTS.map(json.dumps),
    WHOLES | st.integers(-(2**63), 2**63 - 1).map(str),
    NUMBERS,
    st.sampled_from(["true", "false", "null", "True", "0"]),
)
NAMES = ("text", 'na\\"me', "whole", "number", "truth")


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """An object that is nearly, or just, as we would write it."""
    pairs = [f'"{name}":{value}' for name, value in zip(NAMES, draw(VALUES), strict=True)]
    if not draw(st.integers(0, 5)):
        pairs = draw(st.permutations(pairs))
    if not draw(st.integers(0, 5)):
        pairs = pairs[: draw(st.integers(0, 5))]
    text = f"{{{','.join(pairs)}}}".encode()
    if not draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(text)))
        more = draw(st.sampled_from([b" ", b"\xff", b'"', b"}", b"\\", b"0", b"\n", b""]))
        text = text[:place] + more + text[place + draw(st.integers(0, 1)) :]
    return text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
@given(st.lists(bodies(), min_size=1, max_size=8), st.integers(0, 2))
def test_what_is_found_is_what_would_be_written(code: MachineCode, given: list[bytes], skipped: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
        found = same_as_written(pa.array(given, pa.binary()).slice(skipped), FORMAT.schema)
    if found is None:
        assert len(given) <= skipped
        return
    for body, same in zip(given[skipped:], found, strict=True):
        if same:
            decoded = FORMAT.decode(body, FORMAT.schema)
            assert not isinstance(decoded, Malformed)
            assert FORMAT.encode(decoded) == body


@pytest.mark.parametrize(
    "ordinary",
    [
        {"text": "a", 'na"me': "longer than one block of thirty-two bytes", "whole": 1, "number": 1.5, "truth": True},
        {"text": "", 'na"me': "ü", "whole": -(10**17), "number": 10.05, "truth": False},
        {"text": "€" * 50, 'na"me': "b", "whole": 0, "number": -999999999.99, "truth": True},
        {"text": "a", 'na"me': "b", "whole": 0, "number": 0.0, "truth": True},
    ],
)
@pytest.mark.parametrize("count", [1, 100])
def test_ordinary_bodies_are_found(
    code: MachineCode, monkeypatch: pytest.MonkeyPatch, ordinary: dict[str, object], count: int
) -> None:
    monkeypatch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
    found = same_as_written(pa.array([FORMAT.encode(ordinary)] * count, pa.binary()), FORMAT.schema)
    assert found is not None
    assert np.count_nonzero(found) == count


def test_without_machine_code_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonsame, "SWITCH", Switch(is_hopeless=True))
    assert same_as_written(pa.array([b"{}"]), FORMAT.schema) is None

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
from penstock.formats.jsonsame import is_compared, same_as_written
from penstock.schema import Struct, schema

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
SIMPLE = [b'{"text":"a","na\\"me":"b","whole":1,"number":1.5,"truth":true}',
          b'{"text":"","na\\"me":"\xc3\xbc","whole":-2,"number":0.5,"truth":false}']  # fmt: skip
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
        found = same_as_written(pa.array(given, pa.binary()).slice(skipped), FORMAT.schema, FORMAT.schema)
    if found is None:
        assert len(given) <= skipped
        return
    assert found.parts is None
    for body, same, fields in zip(given[skipped:], found.flags, found.fields.to_pylist(), strict=True):
        if same:
            decoded = FORMAT.decode(body, FORMAT.schema)
            assert not isinstance(decoded, Malformed)
            assert FORMAT.encode(decoded) == body
            assert fields == decoded
        else:
            assert not any(fields.values())


ELEMENTS = Json('first STRING, items ARRAY<STRUCT<text: STRING, `na"me`: STRING, whole: BIGINT, number: DOUBLE, '
                'truth: BOOLEAN>>, last BIGINT')  # fmt: skip


@st.composite
def collections(draw: st.DrawFn) -> bytes:
    """Objects with a list of the objects above."""
    items = b",".join(draw(st.lists(bodies() | st.sampled_from(SIMPLE), max_size=4)))
    text = b'{"first":%s,"items":[%s],"last":%d}' % (draw(st.sampled_from([b'"a"', b"null", b'"\xc3\xbc"'])), items, 7)
    if not draw(st.integers(0, 4)):
        place = draw(st.integers(0, len(text)))
        more = draw(st.sampled_from([b" ", b",", b"]", b"[", b"{}", b"null", b""]))
        text = text[:place] + more + text[place + draw(st.integers(0, 1)) :]
    return text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
@given(st.lists(collections(), min_size=1, max_size=8), st.integers(0, 2))
def test_elements_are_copied_as_they_would_be_written(code: MachineCode, given: list[bytes], skipped: int) -> None:
    wanted = schema("first STRING, last BIGINT")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
        found = same_as_written(pa.array(given, pa.binary()).slice(skipped), ELEMENTS.schema, wanted)
    if found is None:
        assert len(given) <= skipped
        return
    rows = zip(given[skipped:], found.flags, found.fields.to_pylist(), found.parts.to_pylist(), strict=True)
    for body, same, fields, parts in rows:
        if same:
            decoded = ELEMENTS.decode(body, ELEMENTS.schema)
            assert not isinstance(decoded, Malformed)
            assert ELEMENTS.encode(decoded) == body
            assert fields == {"first": decoded["first"], "last": decoded["last"]}
            assert parts == [FORMAT.encode(item) for item in decoded["items"]]
        else:
            assert not any(fields.values())
            assert parts == []


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_ordinary_elements_are_found(code: MachineCode, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
    body = b'{"first":"a","items":[%s],"last":1}' % b",".join([SIMPLE[0]] * count)
    found = same_as_written(pa.array([body, b"{}", body], pa.binary()), ELEMENTS.schema, schema("last BIGINT"))
    assert found is not None
    assert found.flags.tolist() == [True, False, True]
    assert found.parts.to_pylist() == [[SIMPLE[0]] * count, [], [SIMPLE[0]] * count]


@pytest.mark.parametrize(
    ("whole", "wanted", "compared"),
    [
        ("a STRING, b ARRAY<STRUCT<c: BIGINT>>", "a STRING", True),
        ("a STRING, b ARRAY<STRUCT<c: BIGINT>>", "b ARRAY<STRUCT<c: BIGINT>>", False),
        ("a STRUCT<c: BIGINT>", "a STRUCT<c: BIGINT>", False),
        ("a BIGINT, b ARRAY<BIGINT>", "a BIGINT", False),
        ("a ARRAY<STRUCT<c: BIGINT>>, b ARRAY<STRUCT<c: BIGINT>>", "", False),
        ("a ARRAY<STRUCT<c: ARRAY<BIGINT>>>", "", False),
        ("", "", False),
    ],
)
def test_what_can_be_compared(whole: str, wanted: str, compared: bool) -> None:
    made = [schema(fields) if fields else Struct(()) for fields in (whole, wanted)]
    assert is_compared(*made) == compared


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
    found = same_as_written(pa.array([FORMAT.encode(ordinary)] * count, pa.binary()), FORMAT.schema, FORMAT.schema)
    assert found is not None
    assert np.count_nonzero(found.flags) == count
    assert found.fields.to_pylist() == [ordinary] * count


@pytest.mark.parametrize("number", ["1.5e2", "1.5E2", "1.0e-3", "1.5e+2"])
@pytest.mark.parametrize("wanted", ["number DOUBLE", "whole BIGINT"])
def test_numbers_with_an_exponent_are_not_as_they_would_be_written(
    code: MachineCode, monkeypatch: pytest.MonkeyPatch, number: str, wanted: str
) -> None:
    monkeypatch.setattr(jsonsame, "SWITCH", Switch(code=code, is_hopeless=True))
    body = SIMPLE[0].replace(b"1.5", number.encode())
    found = same_as_written(pa.array([body], pa.binary()), FORMAT.schema, schema(wanted))
    assert found is not None
    assert not found.flags.any()


def test_without_machine_code_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonsame, "SWITCH", Switch(is_hopeless=True))
    assert same_as_written(pa.array([b"{}"]), FORMAT.schema, FORMAT.schema) is None

"""Columns written as JSON objects: what the reference writes, row by row."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.formats import Json, jsonobjects
from penstock.formats.jsonobjects import write_objects

BOTH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = (
    st.integers(-(10**12), 10**12).map(lambda cents: cents / 100)
    | st.integers(-(10**6), 10**6).map(lambda parts: parts / 10_000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e11, 1e11)
    | st.floats(-0.01, 0.01)
    | st.integers(-(10**17), 10**17).map(float)
    | st.integers(-20, 20).map(lambda power: 10.0**power)
    | st.just(-0.0)
)


@pytest.fixture(params=["arrow", "machine code"], autouse=True)
def who(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both write the same."""
    code = request.getfixturevalue("code") if request.param == "machine code" else None
    monkeypatch.setattr(jsonobjects.SWITCH, "code", code)


ROW = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        'na"me': st.none() | st.sampled_from(["plain", "ü", 'qu"ote', "back\\slash", "line\nend", "\x00", ""]),
        "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
        "number": st.none() | NUMBERS,
        "truth": st.none() | st.booleans(),
    }
)
KINDS = {"text": pa.string(), 'na"me': pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
FORMAT = Json('text STRING, `na"me` STRING, whole BIGINT, number DOUBLE, truth BOOLEAN')


@BOTH
@given(st.lists(ROW, max_size=6), st.integers(0, 2))
def test_every_row_is_what_the_reference_writes(rows: list[dict[str, object]], skipped: int) -> None:
    columns = {name: pa.array([row[name] for row in rows], kind).slice(skipped) for name, kind in KINDS.items()}
    ordered = [{name: row[name] for name in KINDS} for row in rows[skipped:]]
    assert write_objects(columns).to_pylist() == [FORMAT.encode(row) for row in ordered]


def test_what_is_no_number_in_json_is_left_out() -> None:
    columns = {"number": pa.array([math.inf, 1.5, math.nan, None], from_pandas=False)}
    assert write_objects(columns).to_pylist() == [b"{}", b'{"number":1.5}', b"{}", b"{}"]


def test_text_of_any_length_and_many_rows_are_written_whole() -> None:
    texts = ["x" * length + "ü" * (length % 3) for length in range(200)] * 5
    texts[77] = "y" * 40 + '"' + "z" * 40
    rows = [{"text": text, "whole": -number, "number": number / 8} for number, text in enumerate(texts)]
    columns = {name: pa.array([row[name] for row in rows], KINDS[name]) for name in ("text", "whole", "number")}
    assert write_objects(columns).to_pylist() == [FORMAT.encode(row) for row in rows]

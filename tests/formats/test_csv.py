from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadSchema
from penstock.formats import Csv, Malformed
from penstock.schema import schema

ROW = Csv("n BIGINT, s STRING, d DOUBLE, b BOOLEAN")


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (b"1,x,2.5,true", (1, "x", 2.5, True)),
        (b"1,x,2,false\r\n", (1, "x", 2.0, False)),
        (b"1,x,2,false\n", (1, "x", 2.0, False)),
        (b",,,", (None, None, None, None)),
        (b',"",,', (None, "", None, None)),
        (b'"7","a ""b"", c\n","1e3"," true "', (7, 'a "b", c\n', 1000.0, True)),
        (b'+007,a"b, 1 ,', (7, 'a"b', 1.0, None)),
        ("1,é,,".encode(), (1, "é", None, None)),
    ],
)
def test_a_record_is_read_by_position(raw: bytes, values: tuple[Any, ...]) -> None:
    assert ROW.decode(raw, ROW.schema) == dict(zip(ROW.schema.names, values, strict=True))


@pytest.mark.parametrize(
    ("raw", "error", "reason"),
    [
        (b"1,2", "MalformedBody", "the record has 2 fields, the schema 4"),
        (b"", "MalformedBody", "the record has 1 fields, the schema 4"),
        (b'1,"x,,', "MalformedBody", "a quote is opened and not closed in field 2"),
        (b'1,"x"y,,', "MalformedBody", "text after the quotes of field 2"),
        (b"1,x,,\n2,y,,", "MalformedBody", "more than one record"),
        (b"\xff,,,", "MalformedBody", "not UTF-8: byte 0xff at 0"),
        (b"x,,,", "WrongType", "field 'n' is \"x\", expected BIGINT"),
        (b"1.0,,,", "WrongType", "field 'n' is \"1.0\", expected BIGINT"),
        (b"9223372036854775808,,,", "WrongType", "field 'n' is \"9223372036854775808\", expected BIGINT"),
        (b",,1e999,", "WrongType", "field 'd' is \"1e999\", expected DOUBLE"),
        (b",,nan,", "WrongType", "field 'd' is \"nan\", expected DOUBLE"),
        (b",,,yes", "WrongType", "field 'b' is \"yes\", expected BOOLEAN"),
    ],
)
def test_a_record_that_does_not_fit_says_why(raw: bytes, error: str, reason: str) -> None:
    assert ROW.decode(raw, ROW.schema) == Malformed(error, reason)


def test_only_wanted_fields_are_type_checked() -> None:
    assert ROW.decode(b"x,y,z,w", schema("s STRING")) == {"s": "y"}


def test_bad_rows_of_a_batch_are_listed() -> None:
    column, errors = ROW.decode_batch(pa.array(["1,,,", "x,,,", None]), schema("n BIGINT"))
    assert column.to_pylist() == [{"n": 1}, None, None]
    assert [index for index, _ in errors] == [1, 2]


def test_encoding_writes_one_record_without_a_line_end() -> None:
    assert ROW.encode({"s": 'q",\n', "d": 1.0, "b": False}) == b',"q"",\n",1.0,false'
    assert ROW.encode({"d": float("inf")}) == b",,,"
    with pytest.raises(BadSchema, match="field 'z' is not in the CSV schema"):
        ROW.encode({"z": 1})


@pytest.mark.parametrize("ddl", ["a ARRAY<STRING>", "v VARIANT", "o STRUCT<x: STRING>"])
def test_a_schema_that_csv_cannot_carry_is_refused(ddl: str) -> None:
    with pytest.raises(BadSchema, match="CSV cannot carry"):
        Csv(ddl)


def test_a_delimiter_is_one_character_and_not_the_quote() -> None:
    for delimiter in ("", ";;", '"', "\n"):
        with pytest.raises(BadSchema):
            Csv("a STRING", delimiter=delimiter)


@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "s": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            "d": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "b": st.none() | st.booleans(),
        }
    ),
    st.sampled_from([",", ";", "\t", "|", "^", "]"]),
    st.sampled_from(['"', "'", "\\"]),
)
def test_what_is_encoded_is_decoded_again(fields: dict[str, Any], delimiter: str, quote: str) -> None:
    record = Csv(ROW.schema, delimiter=delimiter, quote=quote)
    assert record.decode(record.encode(fields), ROW.schema) == fields

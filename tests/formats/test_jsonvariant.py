"""What stands in a VARIANT: the batch decoder hands on a text that means what the definition says."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.formats import Json, Malformed
from penstock.formats.limits import MAX_VARIANT_BYTES, MAX_VARIANT_KEY

FORMAT = Json("o VARIANT")
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
VALUES = st.recursive(
    st.one_of(NUMBERS, st.sampled_from(["null", "true", "false", '"\\u00e9 1e5"', '"a\\"1e5"', '"\\\\"'])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(st.sampled_from(['"a"', '"\\u0061"', '"b"', '"1e5"']), inner), max_size=4).map(
            lambda items: "{" + ",".join(f"{key}:{value}" for key, value in items) + "}"
        ),
    ),
    max_leaves=8,
)


def decoded(text: str) -> Any:
    fields = FORMAT.decode(f'{{"o": {text}}}'.encode(), FORMAT.schema)
    return fields if isinstance(fields, Malformed) else fields["o"]


def in_batch(text: str) -> Any:
    column, failures = FORMAT.decode_batch(pa.array([f'{{"o": {text}}}'.encode()], pa.binary()), FORMAT.schema)
    if failures:
        return failures[0][1]
    found = column[0].as_py()["o"]
    return None if found is None else json.loads(found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0", 1), ("100.00", 100), ("1e2", 100), ("-0.0", 0), ("-0", 0), ("0e999", 0), ("1e-400", 0),
        ("2.50", 2.5), ("-25e-1", -2.5), ("1e-7", 1e-7), ("1" * 30, int("1" * 30)), ("1e37", 10**37),
        ("1e38", 1e38), ("9223372036854775808", 2**63), ("1." + "0" * 50 + "1", 1), ('{"x":5,"x":6}', {"x": 6}),
        ('{"a":{"b":1},"\\u0061":2}', {"a": 2}), ('"1e5"', "1e5"), ('[" 1e5 ",1e5]', [" 1e5 ", 100000]),
    ],
)  # fmt: skip
def test_whole_numbers_are_exact_as_far_as_38_digits_reach_and_the_last_key_counts(text: str, value: object) -> None:
    assert repr(decoded(text)) == repr(value)
    found = in_batch(text)
    assert found == value
    assert isinstance(found, str) == isinstance(value, str)


@given(VALUES)
def test_a_batch_means_what_one_message_means(text: str) -> None:
    assert in_batch(text) == decoded(text)


@given(NUMBERS)
def test_a_batch_hands_on_no_digits_that_one_message_does_not_have(text: str) -> None:
    one = decoded(text)
    if not isinstance(one, Malformed):
        column, _ = FORMAT.decode_batch(pa.array([f'{{"o": {text}}}'.encode()], pa.binary()), FORMAT.schema)
        assert Decimal(column[0].as_py()["o"]) == Decimal(repr(one))


@pytest.mark.parametrize("text", ["1e400", "-1e400", '{"a": [1e999]}'])
def test_a_number_that_no_double_can_hold_is_refused(text: str) -> None:
    assert decoded(text) == in_batch(text)
    assert decoded(text).error == "WrongType"


def test_what_spark_could_not_hold_is_refused_with_its_size() -> None:
    key = '{"' + "k" * (MAX_VARIANT_KEY + 1) + '":1}'
    assert decoded(key) == in_batch(key) == Malformed(
        "BodyTooLarge", "field 'o' has a key of more than 50,000 characters inside"
    )  # fmt: skip
    assert decoded(key.replace("kk", "k", 1)) == in_batch(key.replace("kk", "k", 1)) == {"k" * MAX_VARIANT_KEY: 1}
    long = '"' + "x" * MAX_VARIANT_BYTES + '"'
    assert decoded(long) == in_batch(long) == Malformed(
        "BodyTooLarge", "field 'o' has 16,777,218 bytes, and a VARIANT at most 16,777,216"
    )  # fmt: skip

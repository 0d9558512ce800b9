"""Output functions: what passes, and what is refused before anything runs."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadExpression, PenstockError
from penstock.log.frame import Frame
from penstock.log.output import LONGEST, output_function

ORDERS = [
    {"total": 5, "status": "P", "lines": [{"price": 3}], "address": {"city": "Bonn"}, "paid": True},
    {"total": 5000.5, "status": "F", "lines": [], "paid": False},
    {},
    {"total": "7", "status": 3},
]
RAW = [*(json.dumps(order).encode() for order in ORDERS), b"broken", b"[1]", b"", b"\xff", b' {"total": 1}']


@pytest.mark.parametrize(("where", "schema", "passing"), [
    ("total < 1000", "total DOUBLE", [0, 8]),
    ("total >= 5 AND status = 'P'", "total DOUBLE, status STRING", [0]),
    ("status IN ('P', 'F')", "status STRING", [0, 1]),
    ("NOT status = 'P'", "status STRING", [1, 2, 3, 8]),
    ("any(lines, item.price > 2)", "lines ARRAY<STRUCT<price: DOUBLE>>", [0]),
    ("lines[0].price = 3", "lines ARRAY<STRUCT<price: DOUBLE>>", [0]),
    ("address.city = 'Bonn'", "address STRUCT<city: STRING>", [0]),
    ("paid", "paid BOOLEAN", [0]),
    ("upper(status) = 'P'", "status STRING", [0]),
    ("total + 1 > 5", "total DOUBLE", [0, 1]),
    ("total IS NOT NULL", "total VARIANT", [0, 1, 3, 8]),
    ("id = 9007199254740993", "id BIGINT", []),
    ("CASE WHEN paid THEN total ELSE 0 END > 4", "paid BOOLEAN, total DOUBLE", [0]),
])  # fmt: skip
def test_types_are_seen_in_the_expression(where: str, schema: str, passing: list[int]) -> None:
    function = output_function(where)
    assert function.fields.ddl() == schema
    assert function.apply(pa.array(RAW, pa.binary())).kept.tolist() == passing


@pytest.mark.parametrize("values", [[b""], [b"", b""], []])
def test_messages_without_a_byte_pass_nothing(values: list[bytes]) -> None:
    for array in (pa.array(values, pa.binary()), Frame.pack(values).values if values else pa.array([], pa.binary())):
        assert output_function("total < 1000").apply(array).kept.tolist() == []


def test_headers_can_be_asked() -> None:
    headers = pa.array([b'{"region":"EU"}', None, b'{"region":"US"}'], pa.binary())
    values = pa.array([b'{"total":1}'] * 3, pa.binary())
    assert output_function("header.region = 'EU' AND total = 1").apply(values, headers).kept.tolist() == [0]


def test_days_and_instants_can_be_asked() -> None:
    values = pa.array([b'{"day":"2024-01-31","at":"2024-01-31T12:00:00+02:00"}', b'{"day":"x"}', b"{}"], pa.binary())
    function = output_function("day < DATE '2024-02-01' AND at = TIMESTAMP '2024-01-31T10:00:00Z'")
    assert function.fields.ddl() == "day DATE, at TIMESTAMP"
    assert function.apply(values).kept.tolist() == [0]
    with pytest.raises(BadExpression, match="a log has no batches"):
        output_function("at < now()")


def test_a_schema_can_be_given() -> None:
    function = output_function("total = copy", schema="total DOUBLE, copy DOUBLE")
    values = pa.array([b'{"total":1,"copy":1.0}', b'{"total":1,"copy":2}'], pa.binary())
    assert function.apply(values).kept.tolist() == [0]


@pytest.mark.parametrize(("where", "what"), [
    ("python('os:getcwd', 'STRING') = 'x'", "does not run Python functions"),
    ("PYTHON ( 'os:getcwd', 'STRING') = 'x'", "does not run Python functions"),
    ("`python`('os:getcwd', 'STRING') = 'x'", "does not run Python functions"),
    ("total <", "expected a value"),
    ("total", None),
    ("status = 'x' AND status > 3", "status is used as STRING and as DOUBLE"),
    ("total + 1", "a condition is true or false"),
    ("xpath('/a')", "read fields of JSON objects"),
    ("total < 1" + " OR total < 1" * LONGEST, "is longer than"),
])  # fmt: skip
def test_what_cannot_be_is_refused(where: str, what: str | None) -> None:
    if what is None:
        assert output_function(where).fields.ddl() == "total BOOLEAN"
        return
    with pytest.raises(PenstockError, match=what):
        output_function(where)


def test_a_module_is_not_imported_by_reading_an_expression() -> None:
    import sys

    assert "antigravity" not in sys.modules
    with pytest.raises(BadExpression):
        output_function("python('antigravity:fly', 'STRING') = 'x'")
    assert "antigravity" not in sys.modules


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-10, 10), st.floats(-10, 10), st.text(max_size=2)), max_size=30))
def test_batches_say_what_single_messages_say(totals: list[object]) -> None:
    raw = [json.dumps({} if total is None else {"total": total}).encode() for total in totals]
    function = output_function("total < 3.5")
    kept = function.apply(pa.array(raw, pa.binary())).kept.tolist()
    assert kept == [place for place, total in enumerate(totals) if isinstance(total, (int, float)) and total < 3.5]
    assert function._one_by_one(pa.array(raw, pa.binary()), None).kept.tolist() == kept


def test_select_leaves_out_what_is_missing() -> None:
    function = output_function("", (("sum", "total + 1"), ("city", "address.city")))
    outcome = function.apply(pa.array(RAW[:3], pa.binary()))
    assert outcome.values.to_pylist() == [b'{"sum":6.0,"city":"Bonn"}', b'{"sum":5001.5}', b"{}"]


@pytest.mark.parametrize("select", [(), (("total", "total"),)])
@pytest.mark.parametrize("values", [[b""], [b"", b""], [b"", b'{"total": 1}', b""]])
def test_empty_messages_pass_nothing_and_stop_nothing(values: list[bytes], select: tuple[tuple[str, str], ...]) -> None:
    passing = [index for index, value in enumerate(values) if value]
    for column in (pa.array(values, pa.binary()), Frame.pack(values).values):
        assert output_function("total < 5", select).apply(column).kept.tolist() == passing

"""Dates, instants, exact numbers and bytes: what is written is read back, and arithmetic is Python's own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Annotated, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import App, Csv, Files, Json, Memory, Route, Xml, body, function, lookup, now
from penstock.dead.letter import Letter, stored_letter
from penstock.errors import PenstockError
from penstock.expr import exact
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.text import parse, to_text
from penstock.expr.types import type_of
from penstock.formats import Malformed
from penstock.formats.jsonnested import write_bodies
from penstock.route.yaml import from_yaml, to_yaml
from penstock.schema import EMPTY, DecimalType, fits, schema
from penstock.testing import KERNEL, REFERENCE, replay, run
from penstock.values import canonical, exactly, read, text_of
from tests.agreement.values import BYTES, DAYS, INSTANTS, decimals

FIELDS = schema("day DATE, at TIMESTAMP, amount DECIMAL(12, 2), tiny DECIMAL(38, 38), blob BINARY")
VALUES = st.fixed_dictionaries(
    {
        "day": DAYS,
        "at": INSTANTS.map(lambda value: value.astimezone(UTC)),
        "amount": decimals(12, 2),
        "tiny": decimals(38, 38),
        "blob": BYTES,
    }
).map(lambda value: {name: canonical(value[name], kind) for name, kind in FIELDS.fields})


@given(VALUES)
@pytest.mark.parametrize("format", [Json(FIELDS), Xml(FIELDS), Csv(FIELDS)], ids=lambda format: format.name)
def test_what_a_format_writes_it_reads_back(format: Any, values: dict[str, Any]) -> None:
    raw = format.encode(values)
    found = format.decode(raw, FIELDS)
    if not values["blob"] and format.name == "xml":
        found["blob"] = b""  # an element without text is missing
    assert found == values
    assert all(fits(found[name], kind) for name, kind in FIELDS.fields)
    assert [text_of(value) for value in found.values()] == [text_of(value) for value in values.values()]


@given(VALUES)
def test_columns_are_written_as_the_definition_writes_one_body(values: dict[str, Any]) -> None:
    body = Json(FIELDS).encode(values)
    table, wrong = Json(FIELDS).decode_batch(pa.array([body, b"{}"]), FIELDS)
    assert not wrong
    assert write_bodies(table, FIELDS).to_pylist() == [body, b"{}"]


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("DATE", '"2024-02-29"', date(2024, 2, 29)),
        ("DATE", '"2024-02-30"', None),
        ("DATE", '"2024-2-9"', None),
        ("DATE", '"2024-02-29T00:00:00Z"', None),
        ("DATE", "20240229", None),
        ("TIMESTAMP", '"2024-02-29T10:00:00Z"', datetime(2024, 2, 29, 10, tzinfo=UTC)),
        ("TIMESTAMP", '"2024-02-29t10:00:00.5+02:00"', datetime(2024, 2, 29, 8, 0, 0, 500000, tzinfo=UTC)),
        ("TIMESTAMP", '"2024-02-29 10:00:00.1234565z"', datetime(2024, 2, 29, 10, 0, 0, 123457, tzinfo=UTC)),
        ("TIMESTAMP", '"2024-02-29T10:00:00"', None),
        ("TIMESTAMP", '"2024-02-29T10:00Z"', None),
        ("TIMESTAMP", '"2024-02-29T24:00:00Z"', None),
        ("TIMESTAMP", '"0001-01-01T00:00:00+00:01"', None),
        ("TIMESTAMP", "1709200800", None),
        ("DECIMAL(5, 2)", "12.3", Decimal("12.30")),
        ("DECIMAL(5, 2)", '"12.30"', Decimal("12.30")),
        ("DECIMAL(5, 2)", "1.23e2", Decimal("123.00")),
        ("DECIMAL(5, 2)", "-0.0", Decimal("0.00")),
        ("DECIMAL(5, 2)", "1.2300", Decimal("1.23")),
        ("DECIMAL(5, 2)", "1.234", None),
        ("DECIMAL(5, 2)", "1000", None),
        ("DECIMAL(5, 2)", "1e999999999999", None),
        ("DECIMAL(5, 2)", '"1_0"', None),
        ("DECIMAL(5, 2)", '"NaN"', None),
        ("DECIMAL(5, 2)", "true", None),
        ("DECIMAL(38, 0)", "9" * 38, Decimal("9" * 38)),
        ("DECIMAL(17, 16)", "0.1234567890123456", Decimal("0.1234567890123456")),
        ("BINARY", '"aGk="', b"hi"),
        ("BINARY", '""', b""),
        ("BINARY", '"aGk"', None),
        ("BINARY", '"a-_="', None),
    ],
)
def test_json_is_read_or_refused(kind: str, written: str, value: Any) -> None:
    format, body = Json(f"v {kind}"), f'{{"v": {written}}}'.encode()
    found = format.decode(body, format.schema)
    table, wrong = format.decode_batch(pa.array([body]), format.schema)
    if value is None:
        expected = Malformed("WrongType", f"field 'v' is {written}, expected {kind}")
        assert found == expected
        assert wrong == [(0, expected)]
    else:
        assert found == {"v": value}
        assert text_of(found["v"]) == text_of(value)
        assert table.to_pylist() == [{"v": value}]


def test_schemas_are_read_from_everything_that_has_types() -> None:
    @dataclass
    class Order:
        day: date
        at: datetime | None
        amount: Annotated[Decimal, DecimalType(12, 2)]
        content: bytes

    ddl = "day DATE, at TIMESTAMP, amount DECIMAL(12, 2), content BINARY"
    Order.__annotations__ |= {"day": date, "at": datetime | None, "amount": Annotated[Decimal, DecimalType(12, 2)],
                              "content": bytes}  # fmt: skip
    assert schema(Order).ddl() == schema(ddl).ddl() == ddl
    texts = {"day": {"format": "date"}, "at": {"format": "date-time"}, "content": {"contentEncoding": "base64"}}
    properties = {name: {"type": "string", **more} for name, more in texts.items()}
    assert schema({"type": "object", "properties": properties}).ddl() == "day DATE, at TIMESTAMP, content BINARY"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a DECIMAL", "DECIMAL is not a type of message bodies"),
        ("a DECIMAL(39, 0)", "DECIMAL(39, 0) is not a type"),
        ("a DECIMAL(3, 4)", "DECIMAL(3, 4) is not a type"),
        ("a INTERVAL", "INTERVAL is not a type of message bodies"),
    ],
)
def test_a_type_that_is_none_is_refused(text: str, what: str) -> None:
    with pytest.raises(PenstockError) as caught:
        schema(text)
    assert what in caught.value.what


def number(text: str) -> Decimal:
    found = read(text, DecimalType(38, 10))
    assert isinstance(found, Decimal)
    return found


_PYTHON = Context(prec=400, rounding=ROUND_HALF_UP)


@given(decimals(20, 4), decimals(38, 9))
def test_arithmetic_is_that_of_python_s_decimals(left: Decimal, right: Decimal) -> None:
    for name, mine in (("add", exact.add), ("subtract", exact.subtract), ("multiply", exact.multiply)):
        truth = getattr(_PYTHON, name)(left, right)
        found = mine(left, right)
        assert found == truth if truth.scaleb(exact.decimals(truth), _PYTHON).copy_abs() < 10**38 else found is None
    if right:
        truth = _PYTHON.divide(left, right).quantize(Decimal("0.000000001"), context=_PYTHON)
        assert exact.divide(left, right) == (truth if truth.copy_abs() < 10**29 else None)


@given(decimals(12, 2), st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_are_exact_beside_decimals(amount: Decimal, whole: int) -> None:
    scope = Scope({"a": amount, "n": whole})
    assert evaluate(parse("a + n"), scope) == _PYTHON.add(amount, Decimal(whole))
    assert evaluate(parse("a < n"), scope) is (amount < whole)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a + a", "DECIMAL(13, 2)"),
        ("a + n", "DECIMAL(22, 2)"),
        ("a * a", "DECIMAL(25, 4)"),
        ("a / a", "DECIMAL(18, 6)"),
        ("a / 3", "DECIMAL(16, 6)"),
        ("a * 1.5", "DOUBLE"),
        ("a * DECIMAL '1.5'", "DECIMAL(15, 3)"),
        ("w + a", "DECIMAL(38, 8)"),
        ("absolute(a)", "DECIMAL(12, 2)"),
        ("round(a, 1)", "DECIMAL(12, 1)"),
        ("round(a, 5)", "DECIMAL(12, 2)"),
        ("coalesce(a, n)", "DECIMAL(21, 2)"),
        ("to_decimal(d, 10, 3)", "DECIMAL(10, 3)"),
        ("day - day", "BIGINT"),
        ("at - at", "DECIMAL(18, 6)"),
    ],
)
def test_results_have_the_types_of_sql(text: str, kind: str) -> None:
    body = schema("a DECIMAL(12, 2), w DECIMAL(38, 8), n BIGINT, d DOUBLE, day DATE, at TIMESTAMP")
    assert str(type_of(parse(text), body)) == kind


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("w * w * w * w * w", "DECIMAL(38, 32) * DECIMAL(38, 8) would have 40 decimals, and there are at most 38"),
        ("day < at", "DATE < TIMESTAMP cannot be compared"),
        ("day = '2024-01-01'", "DATE == STRING cannot be compared"),
        ("v = DATE '2024-01-01'", "VARIANT == DATE cannot be compared: JSON itself has no DATE"),
        ("day + 1", "argument 1 of add is DATE, expected a number"),
        ("to_integer(day)", "argument 1 of to_integer is DATE, expected a number, text or a truth value"),
        ("to_decimal(s, 40, 2)", "argument 2 of to_decimal is BIGINT, expected 1 to 38"),
        ("to_date(s, 'Europe/Berlin')", "to_date: a text has no zone"),
        ("to_date(at, 'Europe/Bonn')", "to_date: there is no zone 'Europe/Bonn'"),
        ("part(day, 'hour')", "part: a date has no hour"),
        ("part(day, 'hours')", "part: there is no part 'hours'"),
        ("part(day, s)", "argument 2 of part is STRING, expected a part in quotes"),
        ("shift(n, 1, 'day')", "argument 1 of shift is BIGINT, expected a DATE or a TIMESTAMP"),
        ("difference(day, at, 'day')", "difference of DATE and TIMESTAMP"),
        ("format_time(day, '%H')", "format_time: a date has %Y, %m and %d only"),
        ("parse_date(s, '%Q')", "parse_date: %Q stands for nothing; there are %Y, %m, %d, %%, %H, %M, %S, %f, %z"),
        ("parse_date(s, '%Y-%m')", "parse_date: '%Y-%m' does not say which day it is: it needs %Y, %m and %d"),
        ("parse_date(s, '%Y-%m-%d%d')", "parse_date: '%Y-%m-%d%d' has a part twice"),
        ("parse_timestamp(s, '%Y-%m-%d')",
         "parse_timestamp: a time needs a zone: either %z in the text, or the name of one"),
        ("round(w, 2, 'bankers')", "round: there is no mode 'bankers'"),
        ("to_string(day, 2)", "to_string of a DATE takes no number of digits"),
        ("coalesce(w, n * 1000000000000000000000000000000)", "1000000000000000000000000000000 does not fit in 64 bits"),
    ],
)
def test_what_does_not_go_together_is_refused(text: str, what: str) -> None:
    body = schema("w DECIMAL(38, 8), n BIGINT, day DATE, at TIMESTAMP, s STRING, v VARIANT")
    with pytest.raises(PenstockError) as caught:
        type_of(parse(text), body)
    assert caught.value.what == what


@pytest.mark.parametrize(
    "text",
    ["DATE '2024-01-31'", "TIMESTAMP '2024-01-31T10:00:00Z'", "DECIMAL '12.30'", "BINARY 'aGk='",
     "day IN (DATE '2024-01-31', DATE '2024-02-01')", "date = DATE '2024-01-31'"],
)  # fmt: skip
def test_constants_are_printed_as_they_are_read(text: str) -> None:
    assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "what"),
    [("DATE '2024-02-30'", "'2024-02-30' is no DATE"), ("timestamp '2024-01-31'", "'2024-01-31' is no TIMESTAMP"),
     ("DECIMAL 'x'", "'x' is no DECIMAL"), (f"DECIMAL '{'9' * 39}'", f"'{'9' * 39}' is no DECIMAL")],
)  # fmt: skip
def test_a_constant_that_is_none_is_refused(text: str, what: str) -> None:
    with pytest.raises(PenstockError) as caught:
        parse(text)
    assert caught.value.what == what


@given(decimals(30, 6))
def test_a_constant_has_the_type_of_its_digits(value: Decimal) -> None:
    kind = type_of(parse(f"DECIMAL '{value:f}'"), EMPTY)
    assert isinstance(kind, DecimalType)
    assert exactly(value, kind) == value


def ready(amount: Decimal) -> bool:
    raise ValueError("not yet")


def test_a_dead_letter_with_such_values_goes_on_where_it_stopped() -> None:
    def app(test: Any) -> App:
        route = Route("in", Memory((), Json(FIELDS))).enrich({"due": body.day, "key": body.blob}).filter(test)
        return App("again", route.to("out"), sinks={"out": Memory()}, dead_letters=Memory())

    given = {"day": date(2024, 2, 29), "at": datetime(2024, 1, 1, tzinfo=UTC), "amount": Decimal("1.50"), "blob": b"hi"}
    broken = function(ready, body.amount, returns="BOOLEAN")
    for engine in (REFERENCE, KERNEL):
        letters = run(app(broken), [given], engine).dead
        assert [letter.reason for letter in letters] == ["ValueError: not yet"]
        stored = [stored_letter(Letter("x", letter).record()).dead for letter in letters]
        for found in (letters, stored):
            (message,) = replay(app(body.amount > 0), found).messages("out")
            assert message.raw == (
                b'{"day":"2024-02-29","at":"2024-01-01T00:00:00Z","amount":1.50,"blob":"aGk=","due":"2024-02-29",'
                b'"key":"aGk="}'
            )


def test_a_route_with_such_constants_is_the_same_in_yaml() -> None:
    source = Files("orders.jsonl", format=Json("day DATE, at TIMESTAMP, amount DECIMAL(12, 2), content BINARY"))
    route = Route("in", source).filter((body.day < date(2024, 1, 1)) & body.amount.is_in(Decimal("1.50"), 2))
    new = {"a": Decimal("1.5"), "b": datetime(2024, 1, 1, tzinfo=UTC), "c": b"hi", "d": now(), "e": body.content,
           "f": lookup(body.day, {date(2024, 1, 1): Decimal("1.10")}, Decimal("0"))}  # fmt: skip
    app = App("constants", route.translate(new).to("out", Files("out")))
    text = to_yaml(app)
    assert to_yaml(from_yaml(text)) == text
    assert from_yaml(text).routes[0].steps == app.routes[0].steps

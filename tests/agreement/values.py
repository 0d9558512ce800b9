"""Random messages with dates, instants, exact numbers and bytes, and random routes that compute with them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from penstock import (
    App,
    Csv,
    Json,
    Memory,
    Route,
    Xml,
    body,
    collect,
    count_of,
    fold,
    last_of,
    lookup_table,
    max_of,
    mean_of,
    min_of,
    sum_of,
)
from penstock.errors import PenstockError
from penstock.expr import nodes
from penstock.expr.columns import Column
from penstock.expr.nodes import Expr
from penstock.expr.times import PARTS, UNITS
from penstock.expr.types import type_of
from penstock.schema import schema

FIELDS = (
    "n BIGINT, d DOUBLE, s STRING, day DATE, due DATE, at TIMESTAMP, until TIMESTAMP, amount DECIMAL(12, 2), "
    "rate DECIMAL(38, 8), whole DECIMAL(5, 0), blob BINARY"
)
SCHEMA = (
    f"{FIELDS}, days ARRAY<DATE>, rates ARRAY<DECIMAL(20, 8)>, m MAP<STRING, TIMESTAMP>, "
    "lines ARRAY<STRUCT<price: DECIMAL(9, 3), sold: TIMESTAMP>>, who STRUCT<born: DATE, key: BINARY>"
)
PRICES = lookup_table(
    [{"day": date(2024, 2, 29), "price": Decimal("1.50"), "since": datetime(2024, 1, 1, tzinfo=UTC), "raw": b"\0"},
     {"day": date(1, 1, 1), "price": None, "since": None, "raw": None}],
    key="day",
)  # fmt: skip

DAYS = st.one_of(
    st.sampled_from([date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)]),
    st.dates(),
    st.dates(date(2023, 12, 1), date(2024, 3, 1)),
)
_OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.one_of(
    st.sampled_from([
        datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ]),
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=_OFFSETS),
    st.datetimes(datetime(2024, 1, 1), datetime(2024, 3, 1), timezones=st.just(UTC)),
)  # fmt: skip


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    digits = st.one_of(st.integers(-most, most), st.integers(-999, 999), st.sampled_from([0, most, -most, 5, 50, -5]))
    return digits.map(lambda number: Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)))


BYTES = st.binary(max_size=5)
TEXTS = st.sampled_from(
    ["", "a", "2024-02-29", "2024-02-30", "12.30", "-0.005", "1e3", "x", "2024-02-29T10:00:00Z",
     "2024-01-01 00:00:00+02:00", "aGk=", "é4111111111", "31.12.2023", "1" * 40]
)  # fmt: skip


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, st.none())


def _written(value: Any) -> Any:
    """As other programs write it: offsets, quotes around numbers."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        import base64

        return base64.b64encode(value).decode()
    raise TypeError(value)


def numbers_of(precision: int, scale: int) -> st.SearchStrategy[Any]:
    return st.one_of(decimals(precision, scale).map(_Raw), decimals(precision, scale).map(str))


class _Raw(str):
    """A Decimal that stands in JSON as a number: see `dumped`."""

    def __new__(cls, digits: Decimal) -> _Raw:
        return super().__new__(cls, f"\0{digits:f}\0")


def dumped(value: Any, ascii: bool = True) -> bytes:
    text = json.dumps(value, default=_written, ensure_ascii=ascii)
    return text.replace('"\\u0000', "").replace('\\u0000"', "").encode()


_EVERYTHING = {
    "n": _maybe(st.one_of(st.integers(-5, 40), st.integers(-(2**63), 2**63 - 1))),
    "d": _maybe(st.floats(-1e6, 1e6)),
    "s": _maybe(TEXTS),
    "day": _maybe(DAYS),
    "due": _maybe(DAYS),
    "at": _maybe(INSTANTS),
    "until": _maybe(INSTANTS),
    "amount": _maybe(numbers_of(12, 2)),
    "rate": _maybe(numbers_of(38, 8)),
    "whole": _maybe(st.one_of(st.integers(-99999, 99999), numbers_of(5, 0))),
    "blob": _maybe(BYTES),
    "days": _maybe(st.lists(_maybe(DAYS), max_size=3)),
    "rates": _maybe(st.lists(_maybe(numbers_of(20, 8)), max_size=3)),
    "m": _maybe(st.dictionaries(st.sampled_from("ab"), _maybe(INSTANTS), max_size=2)),
    "lines": _maybe(st.lists(_maybe(st.fixed_dictionaries(
        {}, optional={"price": _maybe(numbers_of(9, 3)), "sold": _maybe(INSTANTS)})), max_size=3)),
    "who": _maybe(st.fixed_dictionaries({}, optional={"born": _maybe(DAYS), "key": _maybe(BYTES)})),
}  # fmt: skip
BODIES = st.fixed_dictionaries({}, optional=_EVERYTHING)
WHOLE = st.fixed_dictionaries({
    **_EVERYTHING,
    "day": st.sampled_from([date(2024, 2, 29), date(2024, 2, 29), date(1, 1, 1), date(2023, 12, 31)]),
    "at": st.sampled_from([datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=UTC)]),
    "amount": st.sampled_from(["12.30", "0", "-1", "0.05"]),
    "rate": st.sampled_from(["9" * 30 + "." + "9" * 8, "-" + "9" * 30, "0.00000001", "1.5", "2"]),
    "whole": st.sampled_from([1, 2, "3"]),
})  # fmt: skip
WRONG = st.builds(
    lambda good, name, wrong: {**good, name: wrong},
    BODIES,
    st.sampled_from(["day", "at", "amount", "whole", "rate", "blob"]),
    st.sampled_from([
        "", "x", 1, 1.5, -0.0, True, [], {}, "2024-02-30", "2024-2-1", "2024-01-01", "2024-01-01T00:00:00", "NaN",
        0.001, "2024-01-01T00:00:60Z", "2024-01-01T25:00:00Z", "0001-01-01T00:00:00+01:00", "1e-400", "1e400", "0e99",
        "9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.9999999Z", "2024-01-01T00:00:00.1234565Z", "aGk", "a=",
        "1_0", " 1", "+1", "1.", ".5", "12345678901.5", 10**60, 1e300, "1e2", "\u0662",
    ]),
)  # fmt: skip
BROKEN = st.sampled_from([
    b'{"amount": 1e2}', b'{"amount": "x", "amount": 1}', b'{"amount": 1, "amount": 0.001}',
    b'{"day": "\\u0032024-01-01"}',
    b'{"at": "\\u0039999-12-31T23:59:59-10:00"}', b'{"at": "9999-12-31T23:59:59-10:00", "at": null}',
    b"{}", b"[]", b"{",
    b'{"amount": 1E+2}', b'{"amount": -0}', b'{"rate": 0.00000001}', b'{"rate": 0.000000001}', b'{"amount": 01}',
    b'{"amount": 10.10000000000000000000000000000000000000000000}', b'{"blob": "aGk=", "blob": 5}',
])  # fmt: skip
MESSAGES = st.lists(
    st.one_of(WHOLE.map(dumped), WHOLE.map(dumped), BODIES.map(dumped), BODIES.map(lambda value: dumped(value, False)),
              WRONG.map(dumped), BROKEN),
    max_size=10,
)  # fmt: skip

_OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_SHAPES = st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%H:%M:%S.%f %z", "%Y%m%dT%H%M"]).map(nodes.Literal)


ZONES = st.sampled_from(["Europe/Berlin", "UTC", "Pacific/Apia", "America/New_York"]).map(nodes.Literal)
MODES = st.sampled_from(["half_up", "half_even", "floor", "ceiling", "down", "up"]).map(nodes.Literal)
DAY_UNITS = st.sampled_from(UNITS[:5]).map(nodes.Literal)
ALL_UNITS = st.sampled_from(UNITS).map(nodes.Literal)


def _field(*paths: tuple[str | int, ...]) -> st.SearchStrategy[Expr]:
    return st.sampled_from(paths).map(nodes.Field)


def _call(name: Any, *arguments: Any) -> st.SearchStrategy[Expr]:
    names = name if isinstance(name, st.SearchStrategy) else st.just(name)
    return st.builds(lambda called, *given: nodes.Call(called, given), names, *arguments)


def _literal(values: Any) -> st.SearchStrategy[Expr]:
    return values.map(nodes.Literal)


TEXT_FIELDS = _field(("s",))
NUMBERS = _field(("n",), ("d",), ("amount",), ("rate",), ("whole",), ("rates", 0), ("lines", 0, "price"))


@cache
def amounts(depth: int = 2) -> st.SearchStrategy[Expr]:
    """Numbers, most of them exact."""
    leaf = st.one_of(NUMBERS, _literal(st.one_of(decimals(4, 1), decimals(6, 3), st.integers(-9, 9))))
    if depth == 0:
        return leaf
    inner = amounts(depth - 1)
    return st.one_of(
        leaf,
        _call(st.sampled_from(["add", "subtract", "multiply", "divide"]), inner, inner),
        _call("absolute", inner),
        _call("round", inner, _literal(st.integers(0, 4))),
        _call("round", inner, _literal(st.integers(0, 4)), MODES),
        _call("part", days(depth - 1), _literal(st.sampled_from(PARTS[:7]))),
        _call("part", instants(depth - 1), _literal(st.sampled_from(PARTS))),
        _call("part", instants(depth - 1), _literal(st.sampled_from(PARTS)), ZONES),
        _call("difference", days(depth - 1), days(depth - 1), DAY_UNITS),
        _call("difference", instants(depth - 1), instants(depth - 1), ALL_UNITS),
        _call("xxh64", st.one_of(TEXT_FIELDS, BLOBS)),
        _call("to_decimal", st.one_of(inner, TEXT_FIELDS), _literal(st.integers(8, 38)), _literal(st.integers(0, 8))),
        _call(st.sampled_from(["to_integer", "to_double"]), st.one_of(inner, TEXT_FIELDS)),
        _call("subtract", days(depth - 1), days(depth - 1)),
        _call("subtract", instants(depth - 1), instants(depth - 1)),
        _call("coalesce", inner, inner),
        st.builds(lambda test, a, b: nodes.Case(((test, a),), b), conditions(depth - 1), inner, inner),
        st.builds(
            lambda a, o: nodes.Lookup(a, ((Decimal("1.50"), Decimal("2.5")), (3, 7)), o), inner, inner
        ),
    )  # fmt: skip


@cache
def days(depth: int = 2) -> st.SearchStrategy[Expr]:
    leaf = st.one_of(_field(("day",), ("due",), ("days", -1), ("who", "born")), _literal(DAYS))
    if depth == 0:
        return leaf
    return st.one_of(
        leaf,
        _call("to_date", st.one_of(TEXT_FIELDS, instants(depth - 1))),
        _call("to_date", instants(depth - 1), ZONES),
        _call("parse_date", TEXT_FIELDS, _literal(st.sampled_from(["%Y-%m-%d", "%d.%m.%Y"]))),
        _call("shift", days(depth - 1), _field(("n",)), DAY_UNITS),
        _call("shift", days(depth - 1), _literal(st.integers(-20, 20)), DAY_UNITS),
        _call("truncate", days(depth - 1), DAY_UNITS),
        _call("coalesce", days(depth - 1), days(depth - 1)),
    )


@cache
def instants(depth: int = 2) -> st.SearchStrategy[Expr]:
    constants = INSTANTS.map(lambda value: value.astimezone(UTC))
    fields = _field(("at",), ("until",), ("m", "a"), ("lines", 0, "sold"))
    leaf = st.one_of(fields, fields, _literal(constants), st.just(nodes.Meta(nodes.NOW)))
    if depth == 0:
        return leaf
    return st.one_of(
        leaf,
        _call("to_timestamp", st.one_of(TEXT_FIELDS, days(depth - 1))),
        _call("parse_timestamp", TEXT_FIELDS, _literal(st.just("%Y-%m-%dT%H:%M:%S%z"))),
        _call("parse_timestamp", TEXT_FIELDS, _literal(st.just("%d.%m.%Y")), ZONES),
        _call("shift", instants(depth - 1), _literal(st.integers(-20, 20)), ALL_UNITS),
        _call("truncate", instants(depth - 1), ALL_UNITS),
        _call("truncate", instants(depth - 1), ALL_UNITS, ZONES),
        _call("coalesce", instants(depth - 1), instants(depth - 1)),
    )


BLOBS = st.one_of(_field(("blob",), ("who", "key")), _literal(BYTES), _call("to_binary", TEXT_FIELDS))


@cache
def texts(depth: int = 2) -> st.SearchStrategy[Expr]:
    below = max(depth - 1, 0)
    exact = _field(("amount",), ("rate",), ("whole",), ("n",), ("rates", 0))
    return st.one_of(
        TEXT_FIELDS,
        _call("to_string", st.one_of(days(below), instants(below), exact, BLOBS)),
        _call("format_time", days(below), _literal(st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%%%m"]))),
        _call("format_time", instants(below), _SHAPES),
        _call("format_time", instants(below), _SHAPES, ZONES),
        _call("sha256", st.one_of(TEXT_FIELDS, BLOBS)),
        _call("mask", TEXT_FIELDS, _literal(st.integers(0, 5))),
        _call("uuid", st.just(nodes.Meta("id")), TEXT_FIELDS),
    )


@cache
def conditions(depth: int = 2) -> st.SearchStrategy[Expr]:
    below = max(depth - 1, 0)
    leaf = st.one_of(
        st.builds(nodes.Compare, _OPERATORS, amounts(below), amounts(below)),
        st.builds(nodes.Compare, _OPERATORS, days(below), days(below)),
        st.builds(nodes.Compare, _OPERATORS, instants(below), instants(below)),
        st.builds(nodes.Compare, _OPERATORS, BLOBS, BLOBS),
        st.builds(nodes.Compare, _OPERATORS, texts(below), texts(below)),
        st.builds(
            lambda value, options: nodes.In(value, tuple(options)), amounts(below),
            st.lists(st.one_of(decimals(4, 1), decimals(6, 3), st.integers(-3, 3)), min_size=1, max_size=3),
        ),
        st.builds(lambda value, options: nodes.In(value, tuple(options)), days(below), st.lists(DAYS, max_size=3)),
        st.builds(
            lambda operator, price: nodes.AnyOf(
                nodes.Field(("lines",)),
                nodes.Compare(operator, nodes.Field(("price",), nodes.ITEM), nodes.Literal(price)),
            ),
            _OPERATORS, decimals(9, 3),
        ),
        _field(("day",), ("at",), ("amount",), ("blob",)).map(nodes.Present),
    )  # fmt: skip
    if depth == 0:
        return leaf
    inner = conditions(depth - 1)
    return st.one_of(leaf, st.builds(lambda a, b: nodes.And((a, b)), inner, inner), st.builds(nodes.Not, inner))


_BODY = schema(SCHEMA)


def has_type(expression: Expr) -> bool:
    """Products of too many decimals, and alternatives that no type holds, are refused when a route is written."""
    try:
        type_of(expression, _BODY)
    except PenstockError:
        return False
    return True


def typed(expressions: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return expressions.filter(has_type)


def as_number(value: Decimal | None) -> Decimal | None:
    if value is not None and value == 3:
        raise ValueError("three")
    return None if value is None else value * 2


@st.composite
def apps(draw: Any) -> App:
    route = Route("in", Memory((), Json(SCHEMA)))
    if draw(st.booleans()):
        route = route.filter(
            Column(draw(typed(conditions()))), missing=draw(st.sampled_from(["false", "false", "dead"]))
        )
    if draw(st.booleans()):
        route = route.enrich_from(PRICES, body.day, missing=draw(st.sampled_from(["null", "null", "dead"])))
    kind = draw(st.sampled_from(["plain", "translate", "split", "csv", "xml", "fold", "collect", "sticky", "once"]))
    sink: Any = Memory()
    match kind:
        case "translate":
            found = {name: Column(draw(typed(some()))) for name, some in
                     [("a", amounts), ("b", days), ("c", instants), ("d", conditions), ("e", texts)]}  # fmt: skip
            route = route.translate({**found, "f": Column(draw(BLOBS)), "g.h": body.rates, "lines": body.lines})
        case "split":
            route = route.split(draw(st.sampled_from([body.lines, body.rates, body.days])))
        case "csv":
            route = route.keep(*[name for name, _ in schema(FIELDS).fields])
            sink = Memory(format=Csv(FIELDS))
        case "xml":
            sink = Memory(format=Xml(root="message"))
        case "fold":
            key = draw(st.sampled_from([body.day, body.at, body.amount, body.blob, [body.day, body.rate, body.s]]))
            route = route.aggregate(
                fold(n=count_of(body.at), total=sum_of(body.amount), most=sum_of(body.rate), mean=mean_of(body.rate),
                     first=min_of(body.day), last=max_of(body.at), low=min_of(body.whole), any=last_of(body.blob)),
                by=key, size=draw(st.integers(1, 3)),
            )  # fmt: skip
        case "collect":
            route = route.aggregate(collect("ats", of="at", head=["amount"]), by=body.whole, size=2)
        case "once":
            route = route.idempotent(draw(st.sampled_from([body.day, body.rate, body.until, body.blob])))
        case "sticky":
            key = draw(st.sampled_from([body.day, body.at, body.rate, body.blob]))
            start = route.balance("left", "right", sticky=key)
            return App("values", start, sinks={"left": Memory(), "right": Memory()}, dead_letters=Memory())
    return App("values", route.to("out"), sinks={"out": sink}, dead_letters=Memory())

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.expr.functions import FUNCTIONS
from penstock.expr.patterns import groups, has_anchor


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("add", (1, 2), 3),
        ("add", (2**63 - 1, 1), None),
        ("add", (1, 0.5), 1.5),
        ("multiply", (1e308, 10), None),
        ("divide", (1, 4), 0.25),
        ("divide", (1, 0), None),
        ("modulo", (-7, 3), -1),
        ("modulo", (7, -3), 1),
        ("modulo", (7, 0), None),
        ("absolute", (-(2**63),), None),
        ("round", (2.5, 0), 3.0),
        ("round", (-2.5, 0), -3.0),
        ("round", (1.005, 2), 1.01),
        ("concat", ("a", "b", "c"), "abc"),
        ("upper", ("straße",), "STRASSE"),
        ("trim", ("  a \t",), "a \t"),
        ("length", ("𝄞",), 1),
        ("substring", ("message", 3, 2), "sa"),
        ("substring", ("ab", 5, 2), ""),
        ("replace", ("a.b.c", ".", "-"), "a-b-c"),
        ("matches", ("abc", "a.*"), True),
        ("matches", ("xabc", "a.*"), False),
        ("matches", ("a\nb", "a.b"), False),
        ("matches", ("Ж", r"\p{Lu}"), True),
        ("matches", ("&", "[a&&b]"), True),
        ("search", ("xabc", "a.c"), True),
        ("extract", ("order 17 of 20", "([0-9]+) of"), "17"),
        ("extract", ("none", "([0-9]+)"), None),
        ("split", ("a,b,", ","), ["a", "b", ""]),
        ("join", (["a", None, "b"], ","), "a,b"),
        ("size", ([1, None],), 2),
        ("to_string", (True,), "true"),
        ("to_string", (12,), "12"),
        ("to_string", (-0.001, 2), "0.00"),
        ("to_string", (2.345, 2), "2.35"),
        ("to_integer", ("+12",), 12),
        ("to_integer", ("1.5",), None),
        ("to_integer", ("١",), None),
        ("to_integer", (1e300,), None),
        ("to_double", ("1e3",), 1000.0),
        ("to_double", ("1e999",), None),
        ("to_double", ("nan",), None),
        ("coalesce", (None, 1), 1),
        ("absolute", (Decimal("-" + "9" * 38),), Decimal("9" * 38)),
        ("round", (2.5, 0, "half_even"), 2.0),
        ("round", (-2.1, 0, "floor"), -3.0),
        ("round", (-2.9, 0, "ceiling"), -2.0),
        ("round", (-2.9, 0, "down"), -2.0),
        ("round", (2.1, 0, "up"), 3.0),
        ("round", (Decimal("-0.4"), 0), Decimal("0")),
        ("to_decimal", ("1e-400", 5, 2), Decimal("0.00")),
        ("to_decimal", ("1e400", 5, 2), None),
        ("to_decimal", (999.995, 5, 2), None),
        ("to_integer", (Decimal("-2.9"),), -2),
        ("to_integer", (Decimal("9" * 20),), None),
        ("subtract", (date(2024, 3, 1), date(2024, 2, 1)), 29),
        ("subtract", (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)),
         Decimal("-315506361600.000000")),
        ("parse_date", ("2024-02-30", "%Y-%m-%d"), None),
        ("parse_timestamp", ("01/02/2024 03:04:05.5 Z", "%d/%m/%Y %H:%M:%S.%f %z"),
         datetime(2024, 2, 1, 3, 4, 5, 500000, tzinfo=UTC)),
        ("parse_timestamp", ("2024-01-01+24:00", "%Y-%m-%d%z"), None),
        ("parse_timestamp", ("0001-01-01+01:00", "%Y-%m-%d%z"), None),
        ("parse_timestamp", ("2024-03-31 02:30", "%Y-%m-%d %H:%M", "Europe/Berlin"),
         datetime(2024, 3, 31, 1, 30, tzinfo=UTC)),
        ("parse_timestamp", ("2024-10-27 02:30", "%Y-%m-%d %H:%M", "Europe/Berlin"),
         datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),
        ("format_time", (datetime(1, 1, 1, tzinfo=UTC), "%H", "America/New_York"), None),
        ("shift", (date(2023, 1, 31), 1, "month"), date(2023, 2, 28)),
        ("shift", (date(2024, 2, 29), 1, "year"), date(2025, 2, 28)),
        ("shift", (date(2024, 1, 1), 2**62, "quarter"), None),
        ("difference", (date(2024, 2, 29), date(2024, 1, 31), "month"), 1),
        ("difference", (date(2024, 1, 30), date(2024, 2, 29), "month"), 0),
        ("difference", (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 1, 30, tzinfo=UTC), "minute"), -1),
        ("truncate", (datetime(2024, 10, 27, 1, 30, tzinfo=UTC), "hour", "Europe/Berlin"),
         datetime(2024, 10, 27, 1, tzinfo=UTC)),
        ("truncate", (datetime(2024, 5, 5, 1, 30, 15, 7, tzinfo=UTC), "quarter"), datetime(2024, 4, 1, tzinfo=UTC)),
        ("part", (date(2021, 1, 3), "week"), 53),
        ("part", (datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC), "epoch"), -1),
        ("mask", ("😀abcd", 2, "#"), "###cd"),
        ("mask", ("", 2), ""),
        ("xxh64", (b"",), -1205034819632174695),
        ("uuid", ("a", "b"), "38fc7b14-bc0d-5321-ab63-871208b81e74"),
    ],
)
def test_a_function_means(name: str, arguments: tuple[Any, ...], result: Any) -> None:
    found = FUNCTIONS[name].meaning(*arguments)
    assert (found, type(found)) == (result, type(result))


def test_anchors_and_groups_are_seen_outside_character_classes_only() -> None:
    assert [pattern for pattern in ("^a", "a$", "[^a]", "[$^]", r"\^") if has_anchor(pattern)] == ["^a", "a$"]
    assert [groups(pattern) for pattern in ("a", "(a)(b)", "[(]", r"\(")] == [0, 2, 0, 0]

from __future__ import annotations

from typing import Any

import pytest

from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.text import parse

BODY = {
    "id": 7, "total": 12.5, "name": "Ann", "paid": True, "gone": None, "tags": ["a", None, "b"],
    "lines": [{"price": 5.0}, {"price": None}, {"price": 9.0}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value", "strict"),
    [
        ("id < 10", True, True),
        ("id = 7.0", True, True),
        ("gone = 1", False, None),
        ("gone != 1", False, None),
        ("NOT (gone = 1)", True, None),
        ("gone IS NULL", True, True),
        ("nowhere.at.all IS NULL", True, True),
        ("gone = 1 AND id = 0", False, False),
        ("gone = 1 AND id = 7", False, None),
        ("gone = 1 OR id = 7", True, True),
        ("gone = 1 OR id = 0", False, None),
        ("id IN (1, 7)", True, True),
        ("gone IN (1, 7)", False, None),
        ("header.region = 'EU'", True, True),
        ("any(lines, item.price > 8)", True, True),
        ("any(gone, item > 8)", False, False),
        ("any(lines, item.price > id)", True, True),
        ("tags[2]", "b", "b"),
        ("tags[-1]", "b", "b"),
        ("tags[3]", None, None),
        ("select(lines, item.price > 4)", [{"price": 5.0}, {"price": 9.0}], [{"price": 5.0}, {"price": 9.0}]),
        ("CASE WHEN gone = 1 THEN 'x' WHEN paid THEN 'y' END", "y", "y"),
        ("CASE WHEN id = 1 THEN 'x' END", None, None),
        ("lookup(name, 'Ann', 1, 2)", 1, 1),
        ("lookup(gone, 'Ann', 1, 2)", 2, 2),
        ("upper(gone)", None, None),
        ("coalesce(gone, name)", "Ann", "Ann"),
        ("total / 0", None, None),
    ],
)
def test_an_expression_means(text: str, value: Any, strict: Any) -> None:
    headers = {"region": "EU"}
    assert evaluate(parse(text), Scope(BODY, headers)) == value
    assert evaluate(parse(text), Scope(BODY, headers, strict=True)) == strict


def test_a_python_function_sees_values_and_none() -> None:
    assert evaluate(parse("python('builtins:repr', 'STRING', gone)"), Scope(BODY)) == "None"

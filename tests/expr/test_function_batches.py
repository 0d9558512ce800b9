"""Every built-in function over a batch gives what its Python meaning gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.expr import functions, nodes
from penstock.expr.evaluate import Scope, conformed, evaluate
from penstock.expr.functions import FUNCTIONS
from penstock.expr.types import type_of
from penstock.expr.vectorized import evaluate_batch
from penstock.formats.arrow import arrow_type
from penstock.schema import BOOLEAN, DOUBLE, INTEGER, STRING, Array, Struct, Type
from tests.agreement import values

MAX, MIN = 2**63 - 1, -(2**63)
TEXTS = ["", "a", "Straße", "ÀÉ", "日本😀", " \tx ", "a.b|c\\d", "line\nend", "\u2028"]
NUMBERS = [
    (1, 2), (MAX, 1), (MIN, 1), (MIN, -1), (1, 0.5), (-0.0, 0), (1e308, 10.0), (0.1, 0.2), (1, None), (None, 1.5),
    (7, 0),
]  # fmt: skip
CASES: dict[str, list[tuple[Any, ...]]] = {
    "add": NUMBERS,
    "subtract": NUMBERS,
    "multiply": NUMBERS,
    "divide": [*NUMBERS, (0, 0), (1.0, 0.0), (5e-324, 2), (MAX, MAX)],
    "modulo": [(7, 3), (-7, 3), (7, -3), (-7, -3), (7, 0), (MIN, -1), (MIN, MAX), (None, 2)],
    "absolute": [(5,), (-5,), (MIN,), (-0.0,), (-1.5,), (None,)],
    "round": [
        (2.5, 0), (-2.5, 0), (1.005, 2), (2.675, 2), (0.5, 0), (1e300, 3), (-1e-9, 4), (123.456, 1), (None, 2),
    ],
    "concat": [("a",), ("a", "b", "c"), ("", ""), ("😀", "é"), ("a", None)],
    "upper": [(text,) for text in [*TEXTS, None]],
    "lower": [(text,) for text in [*TEXTS, "ǅ", None]],
    "trim": [(text,) for text in [*TEXTS, "   ", "\u00a0x\u00a0", None]],
    "length": [(text,) for text in [*TEXTS, None]],
    "substring": [("message", 3, 2), ("ab", 5, 2), ("ab", 0, 0), ("日本😀x", 1, 2), ("ab", 1, 99), (None, 0, 1)],
    "contains": [("abc", "b"), ("abc", ""), ("", ""), ("a.c", "."), ("abc", "B"), (None, "a"), ("a", None)],
    "starts_with": [("abc", "ab"), ("abc", ""), ("", "a"), ("😀x", "😀"), (None, "a")],
    "ends_with": [("abc", "bc"), ("abc", ""), ("", "a"), ("x😀", "😀"), (None, "a")],
    "replace": [
        ("a.b.c", ".", "-"), ("aaa", "aa", "b"), ("abc", "x", "y"), ("a\\b", "\\", "$1"), (None, "a", "b"),
        ("a", "a", None),
    ],
    "matches": [
        ("abc", "a.*"), ("xabc", "a.*"), ("a\nb", "a.b"), ("Ж", r"\p{Lu}"), ("&", "[a&&b]"), ("a|b", r"a\|b"),
        ("b", "a|b"), ("a\n", "a"), (None, "a"),
    ],
    "search": [("xabc", "a.c"), ("ABC", "b"), ("", "a"), ("x\n", "x"), ("😀", "[^a]"), (None, "a")],
    "extract": [
        ("order 17 of 20", "([0-9]+) of"), ("none", "([0-9]+)"), ("ab", "a(x?)b"), ("aXb", "a(.)b"), (None, "(a)"),
    ],
    "split": [
        ("a,b,", ","), (",", ","), ("", ","), ("a.b|c", "."), ("a||b", "||"), ("a\\b", "\\"), ("日本", "本"),
        (None, ","),
    ],
    "join": [(["a", None, "b"], ","), ([], ","), ([None], "-"), (None, ",")],
    "size": [([1, None],), ([],), (None,)],
    "to_string": [
        (True,), (False,), (12,), (MIN,), (-0.001, 2), (2.345, 2), (1e20, 0), (1e300, 2), (1.5, 0), (-1.5, 3),
        ("x",), (None,),
    ],
    "to_integer": [
        ("+12",), ("-7",), ("1.5",), ("١",), ("",), (" 1",), ("1\n",), (str(MAX),), (str(MAX + 1),), ("9" * 50,),
        (1e300,), (-2.9,), (2.9,), (9.3e18,), (True,), (3,), (None,),
    ],
    "to_double": [
        ("1e3",), ("1e999",), ("nan",), ("Infinity",), (".5",), ("1.",), ("1d",), ("0x1p3",), ("-1.5E-3",), (" 1",),
        (True,), (3,), (MAX,), (1.5,), (None,),
    ],
    "coalesce": [(None, 1), (None, None, "x"), ("a", "b"), (None, 1.5, 2), (1, 2.5), (None, True)],
}  # fmt: skip


def literal(name: str, place: int) -> bool:
    """Whether this argument must stand in the expression itself."""
    kinds = FUNCTIONS[name].arguments
    return kinds[min(place, len(kinds) - 1)] in (functions.LITERAL_STRING, functions.LITERAL_INTEGER, functions.PATTERN)


def kind_of(value: Any, name: str, place: int) -> Type:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return DOUBLE
        case list():
            return Array(INTEGER if any(isinstance(item, int) for item in value) else STRING)
        case str():
            return STRING
    kinds = FUNCTIONS[name].arguments
    kind = kinds[min(place, len(kinds) - 1)]
    if kind == functions.NUMBER:
        return INTEGER
    return kind if isinstance(kind, Type) and name != "size" else Array(STRING) if name == "size" else STRING


def null_type(name: str, arguments: tuple[Any, ...], place: int) -> Type:
    """A missing argument has the type of its neighbour where the function wants one type."""
    present = [value for value in arguments if value is not None]
    if arguments[place] is None and name == "coalesce" and present:
        return kind_of(present[0], name, place)
    return kind_of(arguments[place], name, place)


def test_the_table_has_every_function() -> None:
    """Those of dates, instants and exact numbers are drawn by Hypothesis, for kernel and reference."""
    drawn = set(re.findall(r'_call\("(\w+)"', Path(values.__file__).read_text()))
    assert CASES.keys() | drawn == FUNCTIONS.keys()


def test_a_function_gives_the_same_over_a_batch_as_for_one_message() -> None:
    schema: list[tuple[str, Type]] = []
    row: dict[str, Any] = {}
    calls: list[nodes.Call] = []
    for name, cases in CASES.items():
        for arguments in cases:
            made: list[nodes.Expr] = []
            for place, value in enumerate(arguments):
                if literal(name, place):
                    made.append(nodes.Literal(value))
                    continue
                column = f"c{len(row)}"
                schema.append((column, null_type(name, arguments, place)))
                row[column] = value
                made.append(nodes.Field((column,)))
            calls.append(nodes.Call(name, tuple(made)))
    body = Struct(tuple(schema))
    batch = pa.array([row, {}], arrow_type(body))
    wrong = []
    for call in calls:
        kind = type_of(call, body)
        value = evaluate_batch(call, batch, arrow_type(kind))[0].as_py()
        expected = conformed(evaluate(call, Scope(row, {})), kind)
        if (value, type(value)) != (expected, type(expected)):
            shown = [row[a.path[0]] if isinstance(a, nodes.Field) else a.value for a in call.arguments]
            wrong.append((call.name, shown, "one message", expected, "a batch", value))
    assert wrong == []

from __future__ import annotations

from typing import Any

import pytest

from penstock.expr.functions import FUNCTIONS, groups, has_anchor, python_pattern


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
    ],
)
def test_a_function_means(name: str, arguments: tuple[Any, ...], result: Any) -> None:
    found = FUNCTIONS[name].meaning(*arguments)
    assert (found, type(found)) == (result, type(result))


def test_patterns_are_rewritten_to_what_python_and_java_share() -> None:
    assert python_pattern(r"a.b[.&~]\.") == r"a[^\n\r]b[.\&\~]\."
    assert python_pattern("[$]a$") == r"[$]a(?![\s\S])"


def test_anchors_and_groups_are_seen_outside_character_classes_only() -> None:
    assert [pattern for pattern in ("^a", "a$", "[^a]", "[$^]", r"\^") if has_anchor(pattern)] == ["^a", "a$"]
    assert [groups(pattern) for pattern in ("a", "(a)(b)", "[(]", r"\(")] == [0, 2, 0, 0]

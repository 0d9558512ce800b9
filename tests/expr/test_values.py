"""Values over a batch are those that `evaluate` has for each body."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.nodes import Call, Expr, Field, Literal
from penstock.expr.text import parse
from penstock.expr.values import value_batch, value_type
from penstock.formats.arrow import arrow_type
from penstock.schema import DOUBLE, INTEGER, STRING, schema

BODY = schema("n BIGINT, m BIGINT, d DOUBLE, e DOUBLE, s STRING, at STRUCT<n: BIGINT>")
INTEGERS = st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63), 0, 1, -1]) | st.integers(-9, 9)
DOUBLES = st.sampled_from([0.0, -0.0, 2.0**63, -(2.0**63), 1e308, 5e-324, -0.5]) | st.floats(-9, 9)
BODIES = st.fixed_dictionaries(
    {
        "n": st.none() | INTEGERS, "m": st.none() | INTEGERS, "d": st.none() | DOUBLES, "e": st.none() | DOUBLES,
        "s": st.none() | st.sampled_from(["", "a"]), "at": st.none() | st.fixed_dictionaries({"n": INTEGERS}),
    }
)  # fmt: skip
_whole = st.sampled_from([Field(("n",)), Field(("m",)), Field(("at", "n"))]) | st.builds(Literal, INTEGERS)
_number = _whole | st.sampled_from([Field(("d",)), Field(("e",))]) | st.builds(Literal, DOUBLES)


def _called(name: str, *arguments: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.tuples(*arguments).map(lambda chosen: Call(name, chosen))


_quotient = _called("divide", _number, _number)
_remainder = _called("modulo", _whole, _whole)
VALUES = st.one_of(_number, st.just(Field(("s",))), _quotient, _remainder, _called("to_integer", _number | _quotient))


@given(value=VALUES, bodies=st.lists(BODIES, min_size=1, max_size=8))
def test_they_are_those_of_the_reference(value: Expr, bodies: list[dict[str, Any]]) -> None:
    assert value_type(value, BODY) is not None
    found = value_batch(value, pa.array(bodies, arrow_type(BODY))).to_pylist()
    assert [repr(one) for one in found] == [repr(evaluate(value, Scope(body))) for body in bodies]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("n", INTEGER), ("s", STRING), ("at.n % 3", INTEGER), ("n / 2", DOUBLE), ("to_integer(n / 10)", INTEGER),
        ("upper(s)", None), ("n + 1", None), ("to_integer(s)", None), ("at", None),
    ],
)  # fmt: skip
def test_what_can_be_computed(text: str, kind: Any) -> None:
    assert value_type(parse(text), BODY) == kind

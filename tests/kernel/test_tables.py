"""Enriching from tables: the kernel finds the rows that the reference finds, whatever the keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, Json, Memory, Route, body, call, function, lookup_table
from penstock.endpoints import lookup
from penstock.expr.nodes import Expr
from penstock.testing import KERNEL, run
from tests.agreement.test_kernel import assert_identical

SOURCE = Memory((), Json("s STRING, n BIGINT, x DOUBLE, b BOOLEAN"))
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "s": st.text("abé\0", max_size=3) | st.text(max_size=70),
    "n": st.integers(-4, 4) | st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "x": st.sampled_from([0.0, -0.0, 1.0, 1.5, 2.0**53, 1e300, float("inf"), float("nan")]) | st.floats(),
    "b": st.booleans(),
}
# JSON writes doubles as whole numbers too, and these are not all doubles.
SENT: dict[str, st.SearchStrategy[Any]] = KEYS | {"x": KEYS["x"] | st.sampled_from([0, 1, 2**53 + 1, -(2**60)])}


def unlike(row: dict[str, Any]) -> object:
    return row["key"] if row["key"] == row["key"] else "not a number"


@st.composite
def tables(draw: st.DrawFn, name: str) -> lookup.LookupTable:
    fields = {"key": KEYS[name], "note": st.text(max_size=3) | st.none(), "part": st.lists(st.integers(0, 9))}
    rows = draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=12, unique_by=unlike))
    return lookup_table([*rows, {"key": None, "note": "never"}], "key")


@pytest.mark.parametrize("missing", ["null", "dead"])
@pytest.mark.parametrize("name", KEYS)
@settings(max_examples=40)
@given(data=st.data())
def test_rows_are_those_of_the_reference(name: str, missing: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    stored = [key for key in table.rows if json.dumps(key) not in ("Infinity", "-Infinity")]
    sent = SENT[name] | st.none() | (st.sampled_from(stored) if stored else st.none())
    messages = [json.dumps({name: key}) for key in data.draw(st.lists(sent, max_size=20))]
    into, fields = data.draw(st.sampled_from([(None, None), ("found", None), ("found", ["key"]), (None, ["note"])]))
    on: Expr = data.draw(st.sampled_from([body[name], call("coalesce", body[name], body[name])]))
    route = Route("in", SOURCE).enrich_from(table, on, fields, into, missing).to("out", Memory())
    app = App("tables", route, dead_letters=Memory())
    assert_identical(run(app, messages), run(app, messages, KERNEL))


def test_what_is_not_a_number_is_never_found() -> None:
    nan = float("nan")
    on = function(lambda _: nan, body.x, returns="DOUBLE")
    route = Route("in", SOURCE).enrich_from(lookup_table([{"key": nan, "note": "?"}], "key"), on, missing="dead")
    app = App("tables", route.to("out", Memory()), dead_letters=Memory())
    expected, found = run(app, [{}]), run(app, [{}], KERNEL)
    assert_identical(expected, found)
    assert [letter.reason for letter in found.dead] == ["table has no row for nan"]


def test_only_columns_that_somebody_reads_are_taken() -> None:
    table = lookup_table([{"key": 1, "note": "a", "of": {"x": 1, "y": 2}}], "key")
    start = Route("in", SOURCE).enrich_from(table, body.n, into="found")
    for read in ({"y": body.found.of.y}, {"n": body.n}, {"f": body.found}):
        app = App("tables", start.translate(read).to("out", Memory()), dead_letters=Memory())
        assert_identical(run(app, [{"n": 1}, {"n": 2}]), run(app, [{"n": 1}, {"n": 2}], KERNEL))

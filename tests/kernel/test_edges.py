"""What the block engine must not do differently: the reference says what is right."""

from __future__ import annotations

import datetime
import itertools
import time
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Route, body, call, function, item, jsonpath, lookup, lookup_table, when
from penstock.endpoints.lookup import LookupTable
from penstock.errors import BudgetExceeded
from penstock.kernel import block, bodies, splitting
from penstock.route.route import Route as Building
from penstock.spark.run import run_batch
from penstock.testing import KERNEL, REFERENCE, run
from tests.agreement.test_kernel import assert_identical

ROW = Json(
    "n BIGINT, b BOOLEAN, s STRING, t STRUCT<x: BIGINT>, l ARRAY<BIGINT>, m MAP<STRING, BIGINT>, v VARIANT, "
    "lm ARRAY<MAP<STRING, BIGINT>>, lv ARRAY<VARIANT>"
)
MESSAGES: list[dict[str, Any]] = [
    {"n": 1, "b": True, "s": "a", "t": {"x": 1}, "l": [1, None], "m": {"a": None}, "v": {"a": [1.0, None]}},
    {"n": 3, "lm": [{"a": 1}, None]},
    {"n": 2, "b": False, "s": "é", "t": None, "l": None, "m": {}, "v": None, "lv": [{"a": 2}, 3, None]},
    {},
]


ENGINES = (REFERENCE, KERNEL)


def start() -> Building:
    return Route("in", Memory((), ROW))


def odd(value: Any) -> Any:
    return lambda _: value


def refuses(_: Any) -> Any:
    raise ValueError("half: \ud800")


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def speechless(_: Any) -> Any:
    raise Silent


def nested_table() -> LookupTable:
    """A struct that is null over a list that is not empty, which Arrow allows."""
    lists = pa.array([["x", "y"], ["z"]])
    inner = pa.StructArray.from_arrays([lists], names=["l"], mask=pa.array([False, True]))
    return lookup_table(pa.table({"key": ["a", "é"], "st": inner}), key="key")


def fits(of: Any, returns: str) -> Building:
    return start().translate({"w": function(of, body.n, returns=returns), "n": body.n})


@pytest.mark.parametrize(
    "route",
    [
        start().translate({"w": when(body.b, body.t).otherwise(None), "n": body.n}),
        start().translate({"w": when(body.b, body.l).otherwise(None), "m": when(body.b, body.m).otherwise(None)}),
        start().translate({"w": lookup(body.s, {}, otherwise="none")}),
        start().translate({"v": body.v, "n": body.n}),
        start().enrich({"w": body.v.a[0]}),
        start().split(body.lm).translate({"k": body.value}),
        start().split(body.lv).translate({"k": body.value}),
        start().split(body.l, into="part", head=["n", "t"], tail=["v"]),
        start().enrich_from(nested_table(), body.s).split(body.st.l),
        start().enrich_from(nested_table(), body.s, into="found").filter(body.found.st.l.any(item == "x")),
        start().filter(function(lambda fields: "\0" not in "".join(fields), body, returns="BOOLEAN")),
        start().filter(function(lambda flag: flag is None, body.n > 1, returns="BOOLEAN"), missing="dead"),
        start().filter(body.l.any(function(lambda one: one == 1, item, returns="BOOLEAN"))),
        fits(odd(datetime.date(2020, 1, 1)), "VARIANT"),
        fits(odd(float("nan")), "VARIANT"),
        fits(odd(float("inf")), "DOUBLE"),
        fits(odd(types.MappingProxyType({"x": 1})), "STRUCT<x: BIGINT>"),
        fits(odd(types.MappingProxyType({"x": 1})), "MAP<STRING, BIGINT>"),
        fits(odd("\ud800"), "STRING"),
        fits(odd(1), "STRING"),
        fits(refuses, "STRING"),
    ],
    ids=itertools.count(),
)
def test_it_is_as_the_reference_has_it(route: Building) -> None:
    app = App("edges", route.to("out"), sinks={"out": Memory()}, dead_letters=Memory())
    assert_identical(run(app, MESSAGES), run(app, MESSAGES, KERNEL))


def test_an_error_that_cannot_say_anything_is_named() -> None:
    app = App("a", fits(speechless, "STRING").to("out"), sinks={"out": Memory()}, dead_letters=Memory())
    assert {letter.reason for letter in run(app, MESSAGES, KERNEL).dead} == {"Silent"}


def test_a_dead_letter_has_the_body_as_it_came_to_its_step() -> None:
    route = start().translate({"n": body.n, "t.y": body.t.x, "m": body.m})
    route = route.filter(function(refuses, body, returns="BOOLEAN"))
    app = App("a", route.to("out"), sinks={"out": Memory()}, dead_letters=Memory())
    expected, found = ([letter.message.fields for letter in run(app, MESSAGES, engine).dead] for engine in ENGINES)
    assert expected == found
    assert found[0] == {"n": 1, "t": {"y": 1}, "m": {"a": None}}


def test_many_tries_at_once_need_no_stack() -> None:
    route = fits(refuses, "STRING").on_error(attempts=3000, delay=0)
    app = App("a", route.to("out"), sinks={"out": Memory()}, dead_letters=Memory())
    assert {letter.attempt for letter in run(app, MESSAGES[:1], KERNEL).dead} == {3001}


def test_the_error_budget_of_an_app_holds() -> None:
    app = App("a", fits(refuses, "STRING").to("out"), sinks={"out": Memory()}, dead_letters=Memory(), error_budget=0)
    with pytest.raises(BudgetExceeded):
        run(app, MESSAGES, KERNEL)


def test_parts_beside_large_fields_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, head = 3000, "x" * 10_000
    route = Route("in", Memory((), Json("h STRING, l ARRAY<BIGINT>"))).split(body.l, into="part", head=["h"])
    route = route.filter(body.part >= 0, missing="dead")
    route = route.choice({"even": call("modulo", body.part, 2) == 0}, otherwise="odd")
    app = App("a", route, sinks={"even": Memory(), "odd": Memory()}, dead_letters=Memory())
    message = {"h": head, "l": [*range(parts), None, None]}
    expected = run(app, [message])
    for module in (block, bodies, splitting):
        monkeypatch.setattr(module, "MOST_BYTES", 1 << 20)
    assert_identical(expected, run(app, [message], KERNEL))


def test_what_is_written_in_slices_stays_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of several bodies meet in one sink, more than are written at once."""
    first = Route("in", Memory((), Json("n BIGINT"))).multicast("plain", "made")
    second = Route("made", "made").translate({"n": body.n, "made": True}).to("out")
    app = App("a", first, Route("plain", "plain").to("out"), second, sinks={"out": Memory()})
    messages = [b'{"n": %d}' % number for number in range(40)]
    expected = [message.raw for message in run(app, messages).channels["out"]]
    for most in (1, 64, 100):
        monkeypatch.setattr(bodies, "MOST_BYTES", most)
        assert [message.raw for message in run(app, messages, KERNEL).channels["out"]] == expected


def test_parts_of_an_array_cost_no_more_than_what_is_taken_along() -> None:
    """The array itself is not taken along: that would be quadratic."""
    route = Route("in", Memory((), Json("id BIGINT, l ARRAY<STRING>"))).split(body.l, into="part", head=["id"])
    app = App("a", route.to("out"), sinks={"out": Memory()})

    def seconds(parts: int) -> float:
        message = {"id": 1, "l": ["x" * 50] * parts}
        begun = time.process_time()
        assert len(run(app, [message], KERNEL).channels["out"]) == parts
        return time.process_time() - begun

    few, many = (min(seconds(parts) for _ in range(3)) for parts in (1000, 4000))
    assert many < 10 * few


def test_messages_of_different_bodies_stay_in_order(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(f'{{"n": {number}}}\n' for number in range(50)))
    source = Files(tmp_path / "in.jsonl", Json("n BIGINT, even BOOLEAN"))
    first = Route("in", source).choice({"even": call("modulo", body.n, 2) == 0}, otherwise="out")
    second = Route("two", "even").translate({"n": body.n, "even": True}).to("out")
    run_batch(App("a", first, second, sinks={"out": Files(tmp_path / "out")}), spark)
    (file,) = (tmp_path / "out").iterdir()
    lines = file.read_text().splitlines()
    assert lines == [f'{{"n":{n},"even":true}}' if n % 2 == 0 else f'{{"n": {n}}}' for n in range(50)]


ODD = Json("o VARIANT, t STRING, lines ARRAY<STRUCT<n: BIGINT>>")


@pytest.mark.parametrize(
    "step",
    [
        lambda route: route.filter(body.lines.any(function(bool, item.n, returns="BOOLEAN"))),
        lambda route: route.translate({"s": body.lines.select(function(bool, item.n, returns="BOOLEAN"))}),
        lambda route: route.filter(jsonpath("$.o..a")),
        lambda route: route.filter(jsonpath("$.o[?match(@.a, @.b)]")),
        lambda route: route.filter(jsonpath("search($.o.a, $.o.b)")),
        lambda route: route.filter(jsonpath("$..n")),
        lambda route: route.translate({"s": body.o.select(call("matches", body.t, "(a|aa)+b") & (item.n == 1))}),
    ],
    ids=["any", "select", "descendants", "match", "search", "document", "pattern"],
)
def test_what_is_looked_at_message_by_message_is_what_the_reference_finds(step: Any) -> None:
    app = App("odd", step(Route("in", Memory(format=ODD))).to("out", Memory()), dead_letters=Memory())
    messages = [{"o": {"a": "x", "b": "x"}, "t": "aab", "lines": [{"n": 1}, {"n": 0}]}, {},
                {"o": [{"a": "x", "b": "."}, {"n": 1}], "t": "b"}, {"lines": [{"n": 0}]}]  # fmt: skip
    expected, found = (run(app, messages, engine) for engine in ("reference", "kernel"))
    assert found.bodies("out") == expected.bodies("out") != []
    assert found.dead == expected.dead == []

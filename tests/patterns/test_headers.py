from __future__ import annotations

from typing import Any

import pytest

from penstock import App, Json, KafkaTopic, Log, Memory, Message, Route, body, collect, function, header
from penstock.errors import PenstockError
from penstock.route.yaml import from_yaml, to_yaml
from penstock.testing import KERNEL, REFERENCE, SPARK, run
from tests.patterns.apps import app, start, through, why

BOTH = pytest.mark.parametrize("engine", [REFERENCE, KERNEL])


def told(route: Route, *messages: Any, engine: str = REFERENCE) -> list[dict[str, str]]:
    return [dict(message.headers) for message in through(route.to("x"), messages, engine=engine).messages("x")]


def message(raw: bytes = b"{}", **headers: str) -> Message:
    return Message("", raw, headers=headers)


@BOTH
def test_headers_come_from_constants_the_body_and_other_headers(engine: str) -> None:
    route = start().headers({"who": body.name, "note": "text", "copy": header["old"]})
    given = message(b'{"name": "Ada"}', old="1", other="2")
    assert told(route, given, engine=engine) == [{"who": "Ada", "note": "text", "copy": "1", "old": "1", "other": "2"}]


@BOTH
def test_numbers_and_truth_values_become_the_text_that_json_has_for_them(engine: str) -> None:
    route = start().headers({"id": body.id, "price": body.price, "ok": body.ok, "sum": body.id + 0.5})
    given = b'{"id": 9007199254740993, "price": 1e20, "ok": true}', b'{"id": -1, "price": 3, "ok": false}'
    assert told(route, *given, engine=engine) == [
        {"id": "9007199254740993", "price": "1e20", "ok": "true", "sum": "9007199254740992.0"},
        {"id": "-1", "price": "3.0", "ok": "false", "sum": "-0.5"},
    ]


@BOTH
def test_a_value_that_is_missing_leaves_the_message_without_the_header(engine: str) -> None:
    route = start().headers({"who": body.name, "half": body.price / body.id})
    assert told(route, message(b'{"id": 0, "price": 1}', who="old", half="old", x="y"), engine=engine) == [{"x": "y"}]


@BOTH
def test_headers_are_removed_be_they_there_or_not(engine: str) -> None:
    route = start().headers(remove=["a", "unknown"])
    assert told(route, message(a="1", b="2"), message(a="1"), {}, engine=engine) == [{"b": "2"}, {}, {}]


@BOTH
def test_all_values_see_the_message_as_it_came_to_the_step(engine: str) -> None:
    swapped = start().headers({"a": header["b"], "b": header["a"]})
    assert told(swapped, message(a="1", b="2"), engine=engine) == [{"a": "2", "b": "1"}]


@BOTH
def test_later_steps_read_what_was_set_and_the_body_stays_byte_for_byte(engine: str) -> None:
    route = start().headers({"size": "large"}, remove=["gone"]).filter((header.size == "large") & (header.gone == None))  # noqa: E711
    result = through(route.to("x"), [message(b'{"id":   1, "more": 2}', gone="x")], engine=engine)
    assert [one.raw for one in result.messages("x")] == [b'{"id":   1, "more": 2}']


@BOTH
def test_copies_have_their_own_headers(engine: str) -> None:
    routes = (
        start().tap("seen").headers({"way": "on"}).multicast("a", "b"),
        Route("b", "b").headers({"way": "b"}).to("c"),
    )
    result = through(routes, [message(x="y")], engine=engine)
    found = {channel: dict(result.messages(channel)[0].headers) for channel in ("seen", "a", "c")}
    assert found == {"seen": {"x": "y"}, "a": {"x": "y", "way": "on"}, "c": {"x": "y", "way": "b"}}


@BOTH
def test_parts_and_groups_have_the_headers_that_were_set(engine: str) -> None:
    route = start().headers({"order": body.id}).split(body.lines, into="line").headers({"sku": body.line.sku})
    route = route.aggregate(collect("skus", of="line"), by=header.order, size=2)
    given = {"id": 7, "lines": [{"sku": "a"}, {"sku": "b"}]}
    (found,) = told(route, given, engine=engine)
    assert found == {"order": "7", "sku": "a", "correlation": "7", "completed-by": "size", "group-size": "2"}


def no_odd(number: int) -> str:
    if number % 2:
        raise ValueError("odd")
    return str(number)


@BOTH
def test_a_message_for_which_a_function_fails_dies_with_the_headers_it_had(engine: str) -> None:
    route = start().headers({"seen": "yes"}).headers({"n": function(no_odd, body.id, returns="STRING")})
    result = through(route.to("x"), [{"id": 1}, {"id": 2}], engine=engine)
    assert [dict(one.headers) for one in result.messages("x")] == [{"seen": "yes", "n": "2"}]
    assert why(result) == [("headers-2", "FunctionFailed", "ValueError: odd")]
    assert [dict(letter.message.headers) for letter in result.dead] == [{"seen": "yes"}]


@BOTH
def test_another_try_keeps_what_was_set(engine: str) -> None:
    def second(tries: str | None) -> str:
        if tries is None:
            raise ValueError("not at once")
        return tries

    route = start().headers({"a": "1"}).headers({"tries": function(second, header.redelivered, returns="STRING")})
    assert told(route.on_error(attempts=1, delay=0), {}, engine=engine) == [
        {"a": "1", "redelivered": "1", "tries": "1"},
    ]  # fmt: skip


def test_what_is_stopped_has_the_headers_with_which_it_left_the_step() -> None:
    routes = (
        start().headers({"way": "both"}).multicast("a", "b", stop_on_exception=True),
        Route("a", "a").headers({"way": "a"}).filter(body.price > 1, missing="dead").to("x"),
        Route("b", "b").headers({"way": "b"}).to("y"),
    )
    given = [{"price": 2}, {}]
    reference, kernel = (through(routes, given, engine=engine) for engine in (REFERENCE, KERNEL))
    for result in (reference, kernel):
        died = sorted((letter.error, letter.message.headers["way"]) for letter in result.dead)
        assert died == [("MissingField", "a"), ("Stopped", "both")]
        assert [one.headers["way"] for one in result.messages("y")] == ["b"]


@pytest.mark.parametrize(
    ("values", "remove", "text"),
    [
        ({}, (), "headers needs a header to set or to remove"),
        ({"": "x"}, (), "'' is not the name of a header"),
        ({3: "x"}, (), "3 is not the name of a header"),
        ({"a": "x"}, ("a",), "the header 'a' is named twice"),
        ({"redelivered": "x"}, (), "the header 'redelivered' is one that Penstock itself sets and reads"),
        ({}, ["completed-by"], "the header 'completed-by' is one that Penstock itself sets and reads"),
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[Any, object], remove: Any, text: str) -> None:
    with pytest.raises(PenstockError, match=text) as caught:
        start().headers(values, remove)
    assert "test_headers.py" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "route 'r', step 'headers': header 'h' is never there"),
        (body.tags, "but tags is ARRAY<STRING>"),
        (body.who, "but who is STRUCT<"),
        (body.nobody, "the body has no field 'nobody'"),
    ],
)
def test_what_cannot_be_a_header_is_refused_when_the_plan_is_built(value: object, text: str) -> None:
    with pytest.raises(PenstockError, match=text):
        _ = app(start().headers({"h": value}).to("x")).plan


def test_explain_says_which_sinks_leave_headers_behind() -> None:
    def sinks(route: Route) -> list[str]:
        ends = {"a": Log("a", at="data"), "b": Log("b", at="data", headers=True), "c": KafkaTopic("c")}
        lines = App("e", route.multicast(*ends), sinks=ends).explain().splitlines()
        return [line.split()[0] for line in lines if "headers stay behind" in line]

    assert sinks(start().headers({"a": "b"})) == ["a", "c"]
    assert sinks(start().filter(body.ok)) == []


def test_a_name_may_be_given_as_text_alone() -> None:
    assert start().headers(remove="ab").steps == start().headers(remove=["ab"]).steps


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            "{set: {who: name, note: \"'text'\", n: 1}, remove: [a, b]}",
            ({"who": body.name, "note": "text", "n": 1}, "ab"),
        ),
        ("{set: {copy: header.x}}", ({"copy": header.x}, "")),
        ("{remove: [a]}", (None, "a")),
    ],
)
def test_it_is_written_in_yaml(written: str, meant: tuple[Any, str]) -> None:
    head = "app: y\nroutes:\n  - route: in\n    from: {memory: true, format: json, schema: name STRING}\n    steps:\n"
    read = from_yaml(f"{head}      - headers: {written}\n      - to: {{channel: x, sink: void}}\n")
    assert read.routes[0].steps[0] == start().headers(meant[0], remove=list(meant[1])).steps[0]
    assert from_yaml(to_yaml(read)).routes == read.routes


def test_spark_does_the_same(spark: Any) -> None:
    route = (
        start().headers({"a": body.id, "b": header["b"]}, remove=["c"]).aggregate(collect("all"), by=header.a, size=2)
    )
    messages = [message(b'{"id": 1}', b="x", c="y"), message(b'{"id": 1}'), {"id": 2}, b"broken"]
    given = {"engine": REFERENCE}, {"engine": SPARK, "partitions": 2}
    reference, on_spark = (through(route.to("x"), messages, **how) for how in given)
    assert [dict(one.headers) for one in on_spark.messages("x")] == [
        dict(one.headers) for one in reference.messages("x")
    ]


def test_an_app_with_it_runs_in_the_kernel() -> None:
    tested = App("b", Route("in", Memory((), Json("id BIGINT"))).headers({"a": body.id}).to("x", Memory()))
    assert [dict(one.headers) for one in run(tested, [{"id": 1}], KERNEL).messages("x")] == [{"a": "1"}]

"""VARIANT values come out of Spark as the reference says, however they were written."""

from __future__ import annotations

import json
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Route, body, collect
from penstock.formats.limits import MAX_VARIANT_KEY
from penstock.spark.run import run_batch
from penstock.testing import REFERENCE, SPARK, STREAM, Result, run
from tests.spark.files import lines

NUMBERS = st.one_of(
    st.sampled_from(["-0", "-0.0", "-0e0", "0e999", "1.0", "1", "1e0", "100.00", "1e2", "1e400", "1e-400", "5e-324",
                     "9223372036854775808", "-9223372036854775809", "1" * 30, "9" * 38, "9" * 39, "1e37", "1e38",
                     "0." + "0" * 37 + "1", "0." + "0" * 38 + "1", "1.7976931348623157e308", "0.1", "1e7", "1e-4"]),
    st.from_regex(r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)  # fmt: skip
STRINGS = st.one_of(
    st.sampled_from(['"\\ud83d\\ude00"', '"\\ud800"', '"\\u0000"', '"\\/\\b\\f"', '"1e5"', '"\u2028"', '""', '"\\q"']),
    st.text(max_size=5).map(json.dumps),
)
TEXTS = st.recursive(
    st.one_of(NUMBERS, NUMBERS, STRINGS, st.sampled_from(["null", "true", "false"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[ {' , '.join(items)}]"),
        st.lists(st.tuples(st.sampled_from(['"x"', '"\\u0078"', '"y"', '""']) | STRINGS, inner), max_size=4).map(
            lambda items: "{" + ",".join(f"{key}:{value}" for key, value in items) + "}"
        ),
    ),
    max_leaves=10,
)
DEEP = "[" * 498 + "]" * 498
SLOW = settings(
    max_examples=3, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.reuse, Phase.generate)
)


KINDS = "o VARIANT, many ARRAY<VARIANT>, by MAP<STRING, VARIANT>, s STRUCT<v: VARIANT>"
ALL = {"v": body.o, "all": body.many, "by": body.by, "s": body.s}


def source() -> Route:
    return Route("r", Memory((), Json(KINDS)))


def app(route: Route, *others: str) -> App:
    return App("variants", route, sinks={name: Memory() for name in ("out", *others)}, dead_letters=Memory())


EVERYWHERE = app(
    source().tap("copy").translate(ALL | {"x": body.o.x}).aggregate(collect("two"), by=True, size=2).to("out"),
    "copy",
)
CHOSEN = app(source().filter(body.o.x == 6).to("out"))


def outcome(result: Result) -> Any:
    """Values and types; of a double Spark and Python may write other digits for the same number."""
    sent = {channel: [(m.id, repr(_sorted(json.loads(m.raw)))) for m in result.messages(channel)]
            for channel in result.channels}  # fmt: skip
    return sent, sorted((d.message.id, d.error, d.reason) for d in result.dead), dict(result.filtered)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, _sorted(value[key])) for key in sorted(value)]
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def test_of_keys_that_occur_twice_inside_a_variant_the_last_one_counts(spark: SparkSession) -> None:
    twice = [b'{"o":{"x":5,"x":6}}', b'{"o":{"x":6,"\\u0078":5}}', b'{"o":{"a":{"b":1,"b":2}}}']
    result = run(app(source().translate({"v": body.o}).to("out")), twice, SPARK)
    assert result.bodies("out") == [{"v": {"x": 6}}, {"v": {"x": 5}}, {"v": {"a": {"b": 2}}}]
    assert len(run(CHOSEN, twice, SPARK).messages("out")) == 1


DIGITS = {
    "12345678901234567890.5": "1.2345678901234567E+19", "-12345678901234567890.5": "-1.2345678901234567E+19",
    "0.12345678901234567890123": "0.12345678901234568", "9007199254740993.5": "9007199254740994",
    "123456789012.3450": "123456789012.345", "1234567.12345678901": "1234567.123456789", "2.50": "2.5",
    "0.30000000000000004": "0.30000000000000004", "0.3000000000000000444089209850062616": "0.30000000000000004",
    "1.0": "1", "100.00": "100", "1e2": "100", "-25e-1": "-2.5", "1.5E+3": "1500", "12345678901234567890e-1":
    "1234567890123456789", "1234567890123456789.0": "1234567890123456789", "1.23e-5": "0.0000123",
    "0.0000123": "0.0000123", "1.23456789012345678e-20": "1.2345678901234567E-20", "1e37": "1" + "0" * 37,
    "-0": "0", "-0.0": "0", "-0e0": "0", "0e999": "0", "-1e-400": "0", "1e-400": "0", "1." + "0" * 50 + "1": "1",
    "9" * 38: "9" * 38, "-" + "9" * 38: "-" + "9" * 38, "1" * 38 + ".0": "1" * 38, "9" * 39: "1E+39",
    "1" * 39: "1.111111111111111E+38", "1e38": "1E+38", "1e308": "1E+308", "-1.5e300": "-1.5E+300",
    "1.5e-300": "1.5E-300", "9223372036854775808": "9223372036854775808", "18446744073709551616.25":
    "1.8446744073709552E+19", "1e16": "1" + "0" * 16, "10000000000000000.5": "1E+16",
}  # fmt: skip
"""Numbers as they are written, and the digits that are delivered."""
SHAPES = ("{}", "[{}]", '{{"a": {{"b": [1, {}]}}}}', '[[{{"x": {}}}], "7.5e1"]')


@pytest.mark.parametrize("engine", [REFERENCE, SPARK, STREAM])
@pytest.mark.parametrize("way", ["translated", "remembered"])
def test_only_whole_numbers_of_up_to_38_digits_are_exact(spark: SparkSession, engine: str, way: str) -> None:
    route = source().translate(ALL)
    tested = app(route.to("out") if way == "translated" else route.aggregate(collect("all"), by=True, size=1).to("out"))
    result = run(tested, [_message(text) for text in _written()], engine)
    assert not result.dead
    assert [_digits(message.raw) for message in result.messages("out")] == [
        _digits(_delivered(text, way == "remembered")) for text in _written(DIGITS.get)
    ]


@pytest.mark.parametrize("rewritten", [False, True])
def test_numbers_in_files_have_the_same_digits(spark: SparkSession, tmp_path: Path, rewritten: bool) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(map(_message, _written())) + b"\n")
    route = Route("r", Files(str(tmp_path / "in.jsonl"), Json(KINDS)))
    route = route.translate(ALL) if rewritten else route.filter(body.many.is_present())
    tested = App("a", route.to("out", Files(str(tmp_path / "out"))))
    run_batch(tested, spark)
    expected = [_delivered(text) for text in _written(DIGITS.get)] if rewritten else list(map(_message, _written()))
    assert list(map(_digits, lines(tmp_path / "out"))) == list(map(_digits, expected))


def _written(change: Any = str) -> list[str]:
    return [shape.format(change(number)) for number in DIGITS for shape in SHAPES]


def _message(text: str) -> bytes:
    return f'{{"o": {text}, "many": [{text}, null], "by": {{"k": {text}}}, "s": {{"v": {text}}}}}'.encode()


def _delivered(text: str, collected: bool = False) -> bytes:
    body = _message(text).replace(b'"o"', b'"v"', 1).replace(b'"many"', b'"all"', 1)
    return b'{"all": [' + body + b"]}" if collected else body


def _digits(raw: bytes) -> Any:
    """Values with the digits of their numbers as they are written; whether with an exponent does not count."""
    return _sorted(json.loads(raw, parse_float=_normal, parse_int=_normal))


def _normal(written: str) -> str:
    return f"{Decimal(written).normalize(Context(prec=100)):E}"


@SLOW
@given(st.lists(TEXTS, min_size=20, max_size=60))
def test_a_variant_comes_out_as_the_reference_says(spark: SparkSession, texts: list[str]) -> None:
    note(repr(texts))
    key = '{"' + "k" * MAX_VARIANT_KEY + '":1}'
    messages = [
        f'{{"o": {text}, "many": [{text}, null], "by": {{"k": {text}}}, "s": {{"v": {text}}}}}'.encode()
        for text in [*texts, DEEP, key, key.replace("k", "kk", 1), '{"x":5,"x":6}', '{"x":6.0}', '{"x":0.6e1}']
    ]
    for tested in (EVERYWHERE, CHOSEN):
        expected, found = run(tested, messages, REFERENCE), run(tested, messages, SPARK)
        assert outcome(found) == outcome(expected)
        assert found.summary.conserved

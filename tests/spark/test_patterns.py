"""Regular expressions on Spark: they mean what the reference says, and no message keeps a batch for long."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import App, Json, Memory, Route, body, call, function, header, item, jsonpath
from penstock.testing import REFERENCE, SPARK, STREAM, run
from tests.expr.regular import PATTERNS, TEXTS

FIELDS = Json("n BIGINT, t STRING, tags ARRAY<STRING>, lines ARRAY<STRUCT<s: STRING>>, v VARIANT")
HOSTILE = "(a|aa)+b"


def outcome(app: App, messages: list[Any], engine: str) -> Any:
    result = run(app, messages, engine)
    dead = sorted((letter.message.id, letter.step, letter.error, letter.reason) for letter in result.dead)
    return {name: result.bodies(name) for name in result.channels}, dead, dict(result.filtered)


@settings(max_examples=4, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate))
@given(st.lists(PATTERNS, min_size=8, max_size=12, unique=True), st.lists(TEXTS, min_size=8, max_size=15))
def test_random_patterns_mean_the_same(spark: SparkSession, patterns: list[str], texts: list[str]) -> None:
    values: dict[str, Any] = {}
    for number, pattern in enumerate(patterns):
        quoted = pattern.replace("\\", "\\\\")
        values |= {
            f"m{number}": call("matches", body.t, pattern),
            f"s{number}": call("search", body.t, pattern),
            f"e{number}": call("extract", body.t, f"({pattern})"),
            f"a{number}": body.tags.any(call("matches", item, pattern)),
            f"l{number}": body.lines.select(call("search", item.s, pattern)),
            f"v{number}": jsonpath(f"$.v[?search(@, '{quoted}')]"),
        }
    app = App("patterns", Route("in", Memory(format=FIELDS)).translate(values).to("out", Memory()))
    messages: list[Any] = [{"t": text, "tags": texts[:3], "lines": [{"s": text}], "v": [text, 1, None]}
                           for text in texts]  # fmt: skip
    messages += [{}, {"t": None, "tags": [None], "lines": [None], "v": None}]
    assert outcome(app, messages, SPARK) == outcome(app, messages, REFERENCE)


PLACES = {
    "a first filter": Route("in", Memory(format=FIELDS)).filter(call("matches", body.t, HOSTILE)),
    "a later filter": Route("in", Memory(format=FIELDS)).enrich({"u": call("upper", body.t)})
    .filter(~call("matches", call("lower", body.u), HOSTILE)),
    "a strict filter": Route("in", Memory(format=FIELDS)).filter(call("matches", body.t, HOSTILE), missing="dead"),
    "a strict filter of elements": Route("in", Memory(format=FIELDS))
    .filter(body.lines.any(~(call("matches", item.s, HOSTILE))), missing="dead"),
    "a header": Route("in", Memory(format=FIELDS)).filter(~call("search", header.name, HOSTILE)),
    "elements": Route("in", Memory(format=FIELDS)).filter(body.tags.any(call("search", item, HOSTILE))),
    "elements that are selected": Route("in", Memory(format=FIELDS))
    .translate({"found": body.lines.select(call("search", item.s, HOSTILE) | (body.n == 1))}),
    "a VARIANT": Route("in", Memory(format=FIELDS)).filter(jsonpath(f"$.v[?search(@.s, '{HOSTILE}') || @.s == 1.5]")),
    "a VARIANT that is counted": Route("in", Memory(format=FIELDS))
    .filter(jsonpath(f"count($.v[?match(@.s, '{HOSTILE}')]) == 1")),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_message_does_not_stop_a_batch(spark: SparkSession, place: str) -> None:
    app = App("hostile", PLACES[place].to("out", Memory()))
    long = "a" * 50_000
    messages: list[Any] = [
        {"n": number, "t": text, "tags": [text, None], "lines": [{"s": text}, {}], "v": [{"s": text}, {"s": 1.5}]}
        for number, text in enumerate([long, "aab", "b", "aaxab"])
    ]
    messages += [{"n": 9}, {"v": [{"s": "aab"}, {"s": 2}]}]
    began = time.perf_counter()
    assert outcome(app, messages, SPARK) == outcome(app, messages, REFERENCE)
    assert time.perf_counter() - began < 60


def test_a_hostile_message_does_not_stop_a_stream(spark: SparkSession) -> None:
    app = App("hostile", PLACES["a later filter"].to("out", Memory()))
    messages = [{"t": "a" * 50_000}, {"t": "aab"}]
    assert outcome(app, messages, STREAM) == outcome(app, messages, REFERENCE)


def test_a_pattern_and_a_python_function_may_need_each_other(spark: SparkSession) -> None:
    inner = call("matches", function(str.lower, body.t, returns="STRING"), HOSTILE)
    app = App("both", Route("in", Memory(format=FIELDS))
              .translate({"r": function(lambda flag: not flag, inner, returns="BOOLEAN")})
              .to("out", Memory()))  # fmt: skip
    messages = [{"t": "AAB"}, {"t": "AAC"}]
    assert outcome(app, messages, SPARK) == outcome(app, messages, REFERENCE)


def test_a_group_that_takes_no_part_is_missing(spark: SparkSession) -> None:
    app = App("groups", Route("in", Memory(format=FIELDS))
              .translate({"e": call("extract", body.t, "(a)|b"), "f": call("extract", body.t, "x(a)?")})
              .to("out", Memory()))  # fmt: skip
    messages = [{"t": "b"}, {"t": "a"}, {"t": "x"}, {"t": "xa"}]
    assert outcome(app, messages, SPARK) == outcome(app, messages, REFERENCE)


def test_a_function_reads_inside_a_variant_what_the_reference_reads(spark: SparkSession) -> None:
    app = App("variant", Route("in", Memory(format=FIELDS))
              .translate({"r": function(repr, body.v.a, returns="STRING")}).to("out", Memory()))  # fmt: skip
    messages = [{"v": {"a": 1.5}}, {"v": {"a": [1, {"b": "x"}]}}, {"v": {}}, {"v": {"a": 1e300}}]
    assert outcome(app, messages, SPARK) == outcome(app, messages, REFERENCE)

"""An aggregator between two jobs: it makes the groups that the reference makes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Route, body, call, collect
from penstock.spark import run as spark_run
from penstock.spark.direct import gathering
from penstock.spark.direct.buckets import bucket_of
from penstock.spark.direct.groups import cut
from penstock.spark.direct.steps import is_direct
from penstock.spark.read import shares
from penstock.spark.run import run_batch
from penstock.spark.write.outlets import targets
from penstock.testing import run

ORDER = Json("id BIGINT, total DOUBLE, note STRING, paid BOOLEAN")
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.integers(-9, 9),
        "total": st.none() | st.floats(0, 10),
        "note": st.none() | st.sampled_from(["", "a", "b", 'ü"\\']),
        "paid": st.none() | st.booleans(),
    },
)
MESSAGES = st.lists(BODIES.map(lambda one: json.dumps(one).encode()) | st.just(b"broken"), max_size=30)
KEYS: list[Any] = [
    body.id,
    body.note,
    [body.note, body.id],
    [body.id, body.paid],
    call("to_integer", body.id / 4),
    body.id % 3,
]
COMPLETE: list[dict[str, Any]] = [
    {"size": 1}, {"size": 2}, {"size": 3, "batch_end": True}, {"timeout": "1 minute"},
    {"size": 2, "invalid": "filter"}, {"batch_end": True, "on_stop": "hold"},
]  # fmt: skip
MOVED: list[Callable[[Route], Route]] = [lambda route: route, lambda route: route.filter(body.total < 5)]


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    messages=MESSAGES, key=st.sampled_from(KEYS), complete=st.sampled_from(COMPLETE), moved=st.sampled_from(MOVED),
    share=st.sampled_from([50, 1000]),
)  # fmt: skip
def test_it_does_what_the_reference_does(
    spark: SparkSession, messages: list[bytes], key: Any, complete: dict[str, Any], moved: Callable[[Route], Route],
    share: int,
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "SHARE_BYTES", share)
        home = Path(made)
        halves = (messages[: len(messages) // 2], messages[len(messages) // 2 :])
        for number, half in enumerate(halves):
            (home / f"in-{number}.jsonl").write_bytes(b"".join(message + b"\n" for message in half))
        start = moved(Route("r", Files(str(home / "in-*.jsonl"), ORDER)))
        built = App(
            "a", start.aggregate(collect("all"), by=key, **complete).multicast("one", "two"),
            sinks={name: Files(str(home / name)) for name in ("one", "two")}, dead_letters=Files(str(home / "dead")),
        )  # fmt: skip
        assert is_direct(built.plan, targets(built.plan))
        done, expected = run_batch(built, spark), run(built, {"r": messages})
        assert done.summary.steps == expected.summary.steps
        assert done.summary.conserved
        for channel in ("one", "two"):
            assert sorted(lines(home / channel)) == sorted(one.raw for one in expected.channels[channel])
        dead = [json.loads(letter) for letter in lines(home / "dead")]
        assert sorted((one["step"], one["error"], one["reason"], one["body"].encode()) for one in dead) == sorted(
            (one.step, one.error, one.reason, one.message.raw) for one in expected.dead
        )


def lines(directory: Path) -> list[bytes]:
    return [line for file in sorted(directory.glob("*.jsonl")) for line in file.read_bytes().splitlines()]


def test_large_inputs_go_through_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.jsonl").write_text('{"id": 1}\n{"id": 1}\n')
    route = Route("r", Files(str(tmp_path / "in.jsonl"), ORDER)).aggregate(collect("all"), by=body.id, size=2)
    built = App("a", route.to("x", Files(str(tmp_path / "x"))))
    monkeypatch.setattr(gathering, "LARGEST_GATHERED", 10)
    monkeypatch.setattr(spark_run, "DirectRun", None)
    assert run_batch(built, spark).summary.delivered == {"x": 1}
    assert lines(tmp_path / "x") == [b'{"all":[{"id":1},{"id":1}]}']


def test_groups_of_a_size_begin_anew_with_every_key() -> None:
    order, starts = cut([pa.array([7, 5, 7, 5, 7])], 2)
    assert (order.tolist(), starts.tolist()) == ([1, 3, 0, 2, 4], [0, 2, 4])
    order, starts = cut([pa.array(["a", "b", "a"]), pa.array([True, True, False])], None)
    assert len(starts) == 3


def test_buckets_follow_from_keys_alone() -> None:
    texts = pa.array(["", "a", "bb", "a" * 100, "bb"])
    found = bucket_of([texts], 7)
    assert found[2] == found[4]
    assert np.array_equal(bucket_of([texts.slice(1)], 7), found[1:])
    assert len(np.unique(bucket_of([pa.array(range(1000))], 7))) == 7

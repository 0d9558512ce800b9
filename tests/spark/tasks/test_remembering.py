"""Steps that remember, behind a shuffle of blocks: they do what the reference does."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Route, body, call, collect
from penstock.envelope import ENVELOPE, OFFSET
from penstock.envelope import ORDER as ORDER_COLUMN
from penstock.kernel.state.keys import HIGH, LOW
from penstock.kernel.state.rows import KEY
from penstock.kernel.state.step import StateStep, state_steps
from penstock.patterns.key import FLUSH
from penstock.spark.read import shares
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from penstock.spark.tasks import parcels
from penstock.spark.tasks.shelf import Shelf, Stored, shelf_of
from penstock.spark.write.staging import Staging
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


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
          phases=[Phase.explicit, Phase.reuse, Phase.generate])  # fmt: skip
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


def test_a_stream_groups_over_batches(spark: SparkSession, tmp_path: Path) -> None:
    messages = [b'{"id":%d,"n":%d}' % (number % 7, number) for number in range(200)]
    for number in range(4):
        chosen = messages[number * 50 : number * 50 + 50]
        (tmp_path / f"in-{number}.jsonl").write_bytes(b"".join(message + b"\n" for message in chosen))
    start = Route("r", Files(str(tmp_path / "in-*.jsonl"), Json("id BIGINT, n BIGINT")))
    route = start.idempotent([body.id, body.n], remember_failed=True)
    route = route.resequence(body.n, by=body.id, window=3, on_stop="flush")
    route = route.aggregate(collect("ns", of="n"), by=body.id, size=9, on_stop="flush")
    built = App("a", route.to("x", Files(str(tmp_path / "x"))))
    done = run_stream(built, str(tmp_path / "checkpoint"), once=True, spark=spark, bytes_per_batch=1200)
    expected = run(built, {"r": messages})
    assert done.summary.batches > 2
    assert (done.summary.steps, done.summary.held) == (expected.summary.steps, 0)
    assert sorted(lines(tmp_path / "x")) == sorted(one.raw for one in expected.channels["x"])
    again = run_stream(built, str(tmp_path / "checkpoint"), once=True, spark=spark)
    assert again.summary.received == 0


def steps_of(*routes: Route) -> list[StateStep]:
    return state_steps(App("a", *routes).plan, FLUSH)


@pytest.mark.parametrize("shelved", [False, True], ids=["travelling", "on a shelf"])
def test_more_than_memory_is_good_for_waits_in_files(
    shelved: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The rows of every key come together and in order, however many parcels and files there are."""
    monkeypatch.setattr(parcels, "MOST_BYTES", 4000)
    monkeypatch.setattr(parcels, "PARCEL_BYTES", 200)
    monkeypatch.setattr(parcels, "ROWS_AT_ONCE", 40)
    (step,) = steps_of(Route("r", Memory((), ORDER)).aggregate(collect("all"), by=body.id, size=2).to("x", Memory()))
    rows = pa.table([pa.array([row[field.name] for row in ROWS], field.type) for field in step.arriving],
                    schema=step.arriving)  # fmt: skip
    outbox = parcels.Outbox(3, Shelf(str(tmp_path / "shelf")) if shelved else None)
    inboxes = [parcels.Inbox(step) for _ in range(3)]
    sent = [parcel for start in range(0, len(rows), 7) for parcel in outbox.add(0, rows.slice(start, 7))]
    for bucket, (number, parcel) in [*sent, *outbox.rest()]:
        assert number == 0
        assert isinstance(parcel, Stored if shelved else bytes)
        inboxes[bucket].add(parcel)
    assert len(inboxes[0].sorted) > 1
    lots = [list(inbox.rows()) for inbox in inboxes]
    assert [is_last for lot in lots for _, is_last in lot].count(True) == 3
    assert all(lot[-1][1] for lot in lots)
    found = [row for lot in lots for table, _ in lot for row in table.to_pylist()]
    keys = [row[HIGH] for row in found]
    assert sum(left != right for left, right in itertools.pairwise(keys)) + 1 == len(set(keys)) == 50
    for key in set(keys):
        offsets = [row[OFFSET] for row in found if row[HIGH] == key]
        assert offsets == sorted(offsets)
    assert len(found) == len(ROWS)


@pytest.mark.parametrize("fails", [False, True])
def test_a_shelf_ends_with_its_pass(fails: bool, tmp_path: Path) -> None:
    staging = Staging("k", str(tmp_path), str(tmp_path))
    with suppress(ZeroDivisionError), shelf_of(staging, is_local=True) as directory:
        assert directory is not None
        Shelf(directory).put(pa.table({"n": [1]}))
        assert len(list(tmp_path.glob("*/*"))) == 1
        if fails:
            raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with shelf_of(staging, is_local=False) as directory:
        assert directory is None


def row_of(number: int) -> dict[str, Any]:
    order = {"source": 0, "topic": "r", "partition": 0, "offset": number, "path": []}
    body = {"id": number, "total": 0.5, "note": None, "paid": None}
    return dict.fromkeys(ENVELOPE.names) | {
        HIGH: (number % 50) * 7_919, LOW: 1, KEY: str(number % 50), OFFSET: number, ORDER_COLUMN: order, "s0": body,
    }  # fmt: skip


ROWS = [row_of(number) for number in range(500)]

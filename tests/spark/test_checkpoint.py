"""A checkpoint belongs to one process at a time, and to one stream for as long as it is there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Log, Memory, Route, body
from penstock.errors import ChangedApp, PenstockError
from penstock.log import Frame
from penstock.log import Log as MessageLog
from penstock.patterns.key import HOLD
from penstock.spark.checkpoint import state_of
from penstock.spark.read import beginnings
from penstock.spark.state.table import StateTable
from penstock.spark.stream import run_stream
from penstock.summary import Summary
from tests.docs.pages import penstock
from tests.spark.files import records

ORDER = Json("id BIGINT")
HOLDS = """\
import sys, time
from penstock.spark.checkpoint import owned
with owned(sys.argv[1], "a stream of app 'orders'"):
    print("held", flush=True)
    time.sleep(600)
"""
APP = """\
from penstock import App, Files, Json, Route, body
app = App("orders", Route("intake", Files("in", Json("id BIGINT"))).filter(body.id > 0).to("out", Files("out")))
"""


def orders(home: Path, name: str = "orders") -> App:
    route = Route("intake", Files(home / "in", ORDER)).filter(body.id > 0).to("out", Files(home / "out"))
    return App(name, route, dead_letters=Files(home / "dead"))


def write(home: Path, name: str, *ids: int) -> None:
    (home / "in").mkdir(exist_ok=True)
    (home / name).write_text("".join(json.dumps({"id": number}) + "\n" for number in ids))
    (home / name).rename(home / "in" / name)


def test_the_second_stream_on_a_checkpoint_is_refused_and_the_first_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "monday.jsonl", 1)
    place, stop, first, second = str(tmp_path / "position"), threading.Event(), threading.Event(), threading.Event()

    def seen(summary: Summary) -> None:
        (first if summary.received == 1 else second).set()

    failures: list[BaseException] = []

    def run() -> None:
        try:
            run_stream(orders(tmp_path), place, spark=spark, on_batch=seen, stop=stop)
        except BaseException as error:
            failures.append(error)

    running = threading.Thread(target=run)
    running.start()
    try:
        assert first.wait(120)
        with pytest.raises(PenstockError) as refused:
            run_stream(orders(tmp_path, "others"), place, once=True, spark=spark)
        write(tmp_path, "tuesday.jsonl", 2)
        assert second.wait(120)
    finally:
        stop.set()
        running.join(120)
    assert not failures
    assert refused.value.what.startswith(f"the checkpoint {place} belongs to a stream of app 'orders': process")
    assert f"process {os.getpid()} on " in refused.value.what
    assert sorted(record["id"] for record in records(tmp_path / "out")) == [1, 2]
    run_stream(orders(tmp_path), place, once=True, spark=spark)  # a stream that has ended has let go of it


def test_a_process_that_is_killed_lets_go_of_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    write(tmp_path, "monday.jsonl", 1)
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path / "position")], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    status, said = penstock("penstock run app.py --stream --once --checkpoint position", tmp_path)
    assert status == 2
    assert f"CheckpointInUse: the checkpoint position belongs to a stream of app 'orders': process {holder.pid}" in said
    assert "fix  stop that one first, or use a checkpoint of its own" in said
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    status, said = penstock("penstock run app.py --stream --once --checkpoint position", tmp_path)
    assert status == 0, said


def test_a_checkpoint_without_its_metadata_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "monday.jsonl", 1)
    place = tmp_path / "position"
    run_stream(orders(tmp_path), str(place), once=True, spark=spark)
    (place / "metadata").unlink()
    (place / "commits" / "0").unlink()
    with pytest.raises(PenstockError) as refused:
        run_stream(orders(tmp_path), str(place), once=True, spark=spark)
    assert "has batches up to 0, and its file 'metadata' is gone" in refused.value.what
    assert [record["id"] for record in records(tmp_path / "out")] == [1]


def reading(home: Path, topic: str) -> App:
    route = Route("intake", Log(topic, ORDER, at=home / "log")).filter(body.id > 0).to("out", Files(home / "out"))
    return App("orders", route, dead_letters=Files(home / "dead"))


def push(home: Path, topic: str, *ids: int) -> None:
    with MessageLog(home / "log") as log:
        log.create(topic)
        bodies = [json.dumps({"id": number}).encode() for number in ids]
        log.append(topic, 0, Frame.pack(bodies)).result(30)


def test_a_stream_that_began_in_a_topic_does_not_go_on_in_another(spark: SparkSession, tmp_path: Path) -> None:
    push(tmp_path, "orders", 1, 2)
    push(tmp_path, "returns", 7, 8, 9)
    place = str(tmp_path / "position")
    run_stream(reading(tmp_path, "orders"), place, once=True, spark=spark)
    with pytest.raises(ChangedApp) as refused:
        run_stream(reading(tmp_path, "returns"), place, once=True, spark=spark)
    assert refused.value.what == "route 'intake' reads topic 'returns' now, and the checkpoint is of topic 'orders'"
    assert sorted(record["id"] for record in records(tmp_path / "out")) == [1, 2]


def test_where_a_stream_begins_may_change_until_its_first_batch(tmp_path: Path) -> None:
    note = str(tmp_path / "notes" / "intake.start")
    beginnings.note(note, beginnings.Beginning({"0": 5}, "orders", "latest"))
    beginnings.settle(note, "intake", "orders", "latest", has_batches=False)
    assert beginnings.noted(note) is not None
    beginnings.settle(note, "intake", "orders", "earliest", has_batches=True)
    assert beginnings.noted(note) is not None
    beginnings.settle(note, "intake", "orders", "earliest", has_batches=False)
    assert beginnings.noted(note) is None


def test_the_beginning_that_an_older_version_noted_still_counts(tmp_path: Path) -> None:
    note = tmp_path / "intake.start"
    note.write_text('{"0": 5}')
    beginnings.settle(str(note), "intake", "orders", "latest", has_batches=False)
    assert beginnings.noted(str(note)) == beginnings.Beginning({"0": 5})


def test_a_stream_keeps_the_number_of_its_buckets(spark: SparkSession, tmp_path: Path) -> None:
    messages = [{"id": number % 4} for number in range(20)]
    route = Route("in", Memory(messages, Json("id BIGINT"))).idempotent(body.id)
    app = App("few", route.to("out", Memory()), dead_letters=Memory())
    place = str(tmp_path / "position")
    done = run_stream(app, place, once=True, spark=spark, rows_per_batch=5, buckets=3)
    assert sorted(json.loads(one.raw)["id"] for one in done.channels["out"]) == [0, 1, 2, 3]
    assert StateTable(state_of(place), HOLD).buckets == 3
    with pytest.raises(ChangedApp, match="has 3 buckets, and 8 are asked for"):
        run_stream(app, place, once=True, spark=spark, buckets=8)
    assert run_stream(app, place, once=True, spark=spark).summary.received == 0

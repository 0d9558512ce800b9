"""Streams that the tasks that read them run: which ones, and that they do what the others do."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock import App, Files, Json, KafkaTopic, Log, Route, body
from penstock.errors import BadEndpoint
from penstock.log import Frame
from penstock.log import Log as OpenLog
from penstock.message import DeadLetter, Message, Position
from penstock.reference.resume import entrances
from penstock.spark.read.files import FilePieces, FilesStream
from penstock.spark.read.handover import Handover, Planned
from penstock.spark.read.logs import LogStream
from penstock.spark.replay import arriving_again
from penstock.spark.stream import run_stream
from penstock.spark.tasks import run as direct
from penstock.spark.tasks.readers import Arrivals
from penstock.spark.tasks.run import TaskRun
from penstock.spark.tasks.stream import TaskStream
from penstock.spark.tasks.task import ReadTask
from penstock.spark.write.intent import Journal
from penstock.spark.write.outlets import targets
from penstock.spark.write.staging import Staging
from penstock.testing import run
from tests.spark.tasks.routes import CHANNELS, MESSAGES, ORDER, lines, routes

PLAIN = Json("id BIGINT, total DOUBLE, note STRING")


def filled(home: Path, *partitions: list[bytes], **columns: Any) -> Log:
    with OpenLog(home / "log") as log:
        log.create("in", len(partitions))
        for number, bodies in enumerate(partitions):
            if bodies:
                log.append("in", number, Frame.pack(bodies, **columns)).result()
    return Log("in", PLAIN, at=str(home / "log"))


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(drawn=routes(), messages=MESSAGES)
def test_it_does_what_the_reference_does(spark: SparkSession, drawn: list[Route], messages: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        source = replace(filled(home, messages), format=ORDER)
        used = {name for route in drawn for node in route.steps for name in node.sends_to()} & {*CHANNELS, "tapped"}
        built = App("a", replace(drawn[0], source=source), *drawn[1:],
                    sinks={name: Files(str(home / name)) for name in sorted(used)},
                    dead_letters=Files(str(home / "dead")))  # fmt: skip
        done = run_stream(built, str(home / "position"), once=True, spark=spark, rows_per_batch=5)
        expected = run(built, {"first": messages})
        assert done.summary.conserved
        assert done.summary.received == len(messages)
        if messages:
            assert done.summary.batches == -(-len(messages) // 5)
            assert done.summary.steps == expected.summary.steps
        for channel in expected.channels:
            assert lines(home / channel) == [message.raw for message in expected.channels[channel]]
        dead = [json.loads(letter) for letter in lines(home / "dead")]
        assert [(one["id"], one["error"], one["reason"]) for one in dead] == [
            (f"in/0/{one.message.position.offset}", one.error, one.reason) for one in expected.dead
        ]


def test_dead_letters_and_ages_are_those_of_the_messages(spark: SparkSession, tmp_path: Path) -> None:
    bodies = [b'{"id": 1, "total": 1}', b"broken", b'{"total": "x"}', b'{"id": 2, "total": 9}']
    source = filled(tmp_path, bodies, bodies, times=[10**6, 2 * 10**6, 3 * 10**6, 8 * 10**6],
                    keys=[b"a", b"b", None, b"d"], headers=[None, b'{"from": "x"}', None, None])  # fmt: skip
    route = Route("r", source).choice({"high": body.total > 5}, otherwise="low")
    sinks = {"high": Files(str(tmp_path / "high")), "low": Files(str(tmp_path / "low"))}
    app = App("a", route, sinks=sinks, dead_letters=Files(str(tmp_path / "dead")))
    found = run_stream(app, str(tmp_path / "position"), once=True, spark=spark, rows_per_batch=4).summary
    assert lines(tmp_path / "high") == [bodies[3]] * 2
    assert lines(tmp_path / "low") == [bodies[0]] * 2
    letters = [json.loads(line) for line in lines(tmp_path / "dead")]
    assert {(letter["offset"], letter["headers"].get("from")) for letter in letters} == {(1, "x"), (2, None)}
    assert (found.received, found.dead, found.batches) == (8, 4, 2)
    now = time.time()
    ages = {"high": (2, 8), "low": (2, 1)}
    assert {name: age.messages for name, age in found.latency.items()} == {name: n for name, (n, _) in ages.items()}
    for name, (count, moment) in ages.items():
        assert found.latency[name].seconds == pytest.approx(count * (now - moment), abs=60 * count)
        assert found.latency[name].longest == pytest.approx(now - moment, abs=60)
    assert {name: age.messages for name, age in found.step_latency.items()} == {"r.decode": 8, "r.choice": 4}


def test_two_sources_go_on_where_they_were(spark: SparkSession, tmp_path: Path) -> None:
    source = filled(tmp_path, [b'{"id": 1}', b'{"id": 2}'])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.jsonl").write_text('{"id": 10}\n')
    app = App("a", Route("files", Files(str(tmp_path / "files"), PLAIN)).filter(body.id > 0).to("x"),
              Route("log", source).filter(body.id > 0).to("x"), sinks={"x": Files(str(tmp_path / "x"))})  # fmt: skip

    def go() -> list[int]:
        done = run_stream(app, str(tmp_path / "position"), once=True, spark=spark)
        assert done.summary.conserved
        return [json.loads(line)["id"] for line in lines(tmp_path / "x")]

    assert sorted(go()) == [1, 2, 10]
    with OpenLog(tmp_path / "log") as log:
        log.append("in", 0, Frame.pack([b'{"id": 3}'])).result()
    assert go()[3:] == [3]
    (tmp_path / "files" / "b.jsonl").write_text('{"id": 11}\n')
    assert go()[4:] == [11]
    assert len(go()) == 5


def test_where_a_stream_began_is_noted_before_its_first_batch(tmp_path: Path) -> None:
    source = filled(tmp_path, [b"{}"] * 3)
    entry = App("a", Route("r", source).to("x", Files("x"))).plan.entries[0]
    begun = LogStream(entry, str(tmp_path / "notes" / "r.start"), 10, 2)
    begun.beginning = lambda: {"0": 2}  # type: ignore[method-assign]
    assert begun.initialOffset() == {"0": 2}
    assert LogStream(entry, str(tmp_path / "notes" / "r.start"), 10, 2).initialOffset() == {"0": 2}


def test_every_batch_is_read_by_the_tasks_that_run_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    arrivals = TaskStream.arrivals

    def counted(self: TaskStream, data: Any) -> Any:
        found = arrivals(self, data)
        numbers.append(sum(piece.stop - piece.first for given in found.given for piece in given.pieces))
        return found

    monkeypatch.setattr(TaskStream, "arrivals", counted)
    source = filled(tmp_path, [b"{}"] * 7)
    done = run_stream(App("a", Route("r", source).to("x", Files(str(tmp_path / "x")))), once=True, spark=spark,
                      rows_per_batch=3)  # fmt: skip
    assert numbers == [3, 3, 1]
    assert done.summary.received == 7


def test_tasks_do_not_get_the_secrets_of_sinks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pickled: list[bytes] = []

    def noted(*given: Any) -> ReadTask:
        task = ReadTask(*given)
        pickled.append(cloudpickle.dumps(task))
        return task

    monkeypatch.setattr(direct, "ReadTask", noted)
    sink = KafkaTopic("x", servers="host:1", options={"sasl.password": "hidden"})
    app = App("a", Route("r", Files("in", PLAIN)).to("x", sink), dead_letters=Log("dead", at="host:2", token="hidden"))
    outlets = targets(app.plan)
    assert b"hidden" in cloudpickle.dumps(outlets)
    TaskRun(spark, app.plan, outlets).compute(Arrivals(), Staging("k", str(tmp_path), "lasting"))
    assert len(pickled) == 1
    assert b"hidden" not in pickled[0]


@pytest.mark.parametrize("step", ["decode", "to"])
def test_letters_that_come_again_bring_no_secrets(step: str) -> None:
    sink = KafkaTopic("x", servers="host:1", options={"sasl.password": "hidden"})
    source = Log("in", PLAIN, at="host:2", token="hidden")
    plan = App("a", Route("r", source).to("x", sink), dead_letters=Files("dead")).plan
    letter = DeadLetter(Message("in/0/1", b'{"id": 1}', position=Position("in", 0, 1)), "r", step, "Failed", "why")
    assert b"hidden" not in cloudpickle.dumps(arriving_again(plan, entrances(plan, [letter])))


def test_a_stream_whose_position_was_deleted_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    source = filled(tmp_path, [b'{"id": 1}'])
    app = App("a", Route("r", source).to("x", Files(str(tmp_path / "x"))))
    notes = tmp_path / "position" / "penstock-sources"
    notes.mkdir(parents=True)
    (notes / "r.start").write_text('{"0": 1}')
    run_stream(app, str(tmp_path / "position"), once=True, spark=spark)
    assert lines(tmp_path / "x") == [b'{"id": 1}']
    assert json.loads((notes / "r.start").read_text())["offsets"] == {"0": 0}


def test_a_checkpoint_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    source = filled(tmp_path, [b'{"id": 1}'])
    app = App("a", Route("r", source).to("x", Files(str(tmp_path / "x"))))
    place = tmp_path / "a b=ü%20@"
    for _ in range(2):
        run_stream(app, str(place), once=True, spark=spark)
        assert (place / "offsets" / "0").is_file()
        assert lines(tmp_path / "x") == [b'{"id": 1}']
    assert {path.name for path in tmp_path.iterdir()} == {"log", "x", place.name}


def test_a_topic_that_has_less_than_was_read_is_another_one(tmp_path: Path) -> None:
    entry = App("a", Route("r", filled(tmp_path, [b"{}"] * 3)).to("x", Files("x"))).plan.entries[0]
    for once in (False, True):
        source = LogStream(entry, str(tmp_path / "notes" / "r.start"), 10, 2)
        if once:
            source.prepareForTriggerAvailableNow()
        assert source.latestOffset({"0": 1}, source.getDefaultReadLimit()) == {"0": 3}
        with pytest.raises(BadEndpoint, match=r"partition 0 of topic 'in' up to 5, and it ends at 3"):
            source.latestOffset({"0": 5}, source.getDefaultReadLimit())
    with pytest.raises(BadEndpoint, match=r"partition 0 of topic 'in' from 5 to 3"):
        source.between({"0": 5}, {"0": 3})
    with pytest.raises(BadEndpoint, match=r"partition 7 of topic 'in' up to 0, and it is not there any more"):
        source.latestOffset({"0": 0, "7": 0}, source.getDefaultReadLimit())


def test_a_list_of_files_that_is_too_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    entry = App("a", Route("r", Files(str(tmp_path / "a.jsonl"), PLAIN)).to("x", Files("x"))).plan.entries[0]
    source = FilesStream(FilePieces(entry), str(tmp_path / "r.jsonl"))
    assert source.latestOffset({"chunks": 0}, source.getDefaultReadLimit()) == {"chunks": 1}
    with pytest.raises(BadEndpoint, match=r"come to chunk 2, and .*r\.jsonl knows 1"):
        source.between({"chunks": 0}, {"chunks": 2})
    with pytest.raises(BadEndpoint, match=r"come to chunk 2, and .*r\.jsonl knows 1"):
        source.latestOffset({"chunks": 2}, source.getDefaultReadLimit())


def test_spark_counts_the_messages_of_every_source(spark: SparkSession, tmp_path: Path) -> None:
    """As its pages, its listeners and the progress of a query have them."""
    source = filled(tmp_path, [b'{"id": 1}', b"broken", b'{"id": 2}'])
    (tmp_path / "a.jsonl").write_text('{"id": 10}\n{"id": 11}\n')
    app = App("counted", Route("log", source).to("x"), Route("files", Files(str(tmp_path / "a.jsonl"), PLAIN)).to("x"),
              sinks={"x": Files(str(tmp_path / "x"))}, dead_letters=Files(str(tmp_path / "dead")))  # fmt: skip
    seen: list[tuple[int, list[int]]] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            if event.progress.name == "counted":
                seen.append((event.progress.numInputRows, [one.numInputRows for one in event.progress.sources]))

        def onQueryTerminated(self, event: Any) -> None:
            ended.set()

    ended, listener = threading.Event(), Listener()
    spark.streams.addListener(listener)
    try:
        run_stream(app, once=True, spark=spark, rows_per_batch=2)
        assert ended.wait(60)
    finally:
        spark.streams.removeListener(listener)
    assert seen == [(4, [2, 2]), (1, [1, 0])]


def test_a_batch_has_what_was_planned_for_it_and_no_other(tmp_path: Path) -> None:
    handover = Handover(str(tmp_path), 3)
    assert handover.take() is None
    handover.plan({"0": 1}, {"0": 4})
    assert handover.take() == Planned({"0": 1}, {"0": 4})
    assert handover.take() is None
    handover.plan({"0": 5}, {"0": 6})
    with pytest.raises(AssertionError, match="begins where the one before ended"):
        handover.take()
    handover.counted(3)
    handover.plan({"0": 4}, {"0": 6})
    again = Handover(str(tmp_path), 3)
    assert (again.take(), again.messages()) == (None, 0)


def test_what_is_known_of_a_position_is_kept_while_spark_has_any_of_it(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    assert not journal.has_begun
    (tmp_path / "offsets").mkdir()
    assert not journal.has_begun
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n-")
    assert journal.has_begun

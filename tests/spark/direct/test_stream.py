"""Streams that the tasks that read them run: which ones, and that they do what the others do."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from penstock import App, Files, Json, KafkaTopic, Log, Route, body
from penstock.errors import BadEndpoint
from penstock.log import Frame
from penstock.log import Log as OpenLog
from penstock.spark import stream
from penstock.spark.direct.run import DirectRun
from penstock.spark.direct.steps import is_direct
from penstock.spark.direct.stream import DirectStream
from penstock.spark.read.files import FilesStream
from penstock.spark.read.logs import LogStream
from penstock.spark.run import RunResult
from penstock.spark.stream import run_stream
from penstock.spark.write.intent import Journal
from penstock.spark.write.outlets import targets
from penstock.spark.write.staging import Staging
from penstock.testing import run
from tests.spark.direct.routes import CHANNELS, MESSAGES, ORDER, lines, routes

PLAIN = Json("id BIGINT, total DOUBLE, note STRING")


def filled(home: Path, *partitions: list[bytes], **columns: Any) -> Log:
    with OpenLog(home / "log") as log:
        log.create("in", len(partitions))
        for number, bodies in enumerate(partitions):
            if bodies:
                log.append("in", number, Frame.pack(bodies, **columns)).result()
    return Log("in", PLAIN, at=str(home / "log"))


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(drawn=routes(), messages=MESSAGES)
def test_it_does_what_the_reference_does(spark: SparkSession, drawn: list[Route], messages: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        source = replace(filled(home, messages), format=ORDER)
        used = {name for route in drawn for node in route.steps for name in node.sends_to()} & {*CHANNELS, "tapped"}
        built = App("a", replace(drawn[0], source=source), *drawn[1:],
                    sinks={name: Files(str(home / name)) for name in sorted(used)},
                    dead_letters=Files(str(home / "dead")))  # fmt: skip
        assert is_direct(built.plan, targets(built.plan))
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


def both_ways(
    monkeypatch: pytest.MonkeyPatch, home: Path, go: Callable[[Path], RunResult]
) -> list[tuple[Path, RunResult]]:
    """Once by the tasks that read, once through Spark's rows."""
    results = []
    for name, chosen in (("direct", is_direct), ("rows", lambda *_: False)):
        monkeypatch.setattr(stream, "is_direct", chosen)
        results.append((home / name, go(home / name)))
    return results


def test_dead_letters_and_ages_are_those_of_the_other_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [b'{"id": 1, "total": 1}', b"broken", b'{"total": "x"}', b'{"id": 2, "total": 9}']
    source = filled(tmp_path, bodies, bodies, times=[10**6, 2 * 10**6, 3 * 10**6, 8 * 10**6],
                    keys=[b"a", b"b", None, b"d"], headers=[None, b'{"from": "x"}', None, None])  # fmt: skip

    def go(home: Path) -> RunResult:
        route = Route("r", source).choice({"high": body.total > 5}, otherwise="low")
        sinks = {"high": Files(str(home / "high")), "low": Files(str(home / "low"))}
        app = App("a", route, sinks=sinks, dead_letters=Files(str(home / "dead")))
        return run_stream(app, str(home / "position"), once=True, spark=spark, rows_per_batch=4)

    (one, direct), (other, rows) = both_ways(monkeypatch, tmp_path, go)
    for name in ("high", "low"):
        assert lines(one / name) == lines(other / name)
    letters = [[json.loads(line) | {"letter": None} for line in lines(home / "dead")] for home in (one, other)]
    assert letters[0] == letters[1]
    assert {(letter["offset"], letter["headers"].get("from")) for letter in letters[0]} == {(1, "x"), (2, None)}
    assert direct.summary.steps == rows.summary.steps
    assert (direct.summary.received, direct.summary.dead, direct.summary.batches) == (8, 4, 2)
    assert direct.summary.latency.keys() == rows.summary.latency.keys() == {"high", "low"}
    assert direct.summary.step_latency.keys() == rows.summary.step_latency.keys()
    for ages, others in ((direct.summary.latency, rows.summary.latency),
                         (direct.summary.step_latency, rows.summary.step_latency)):  # fmt: skip
        for name, age in ages.items():
            assert age.messages == others[name].messages
            assert age.seconds == pytest.approx(others[name].seconds, abs=60 * age.messages)
            assert age.longest == pytest.approx(others[name].longest, abs=60)


def test_two_sources_go_on_where_they_were(spark: SparkSession, tmp_path: Path) -> None:
    source = filled(tmp_path, [b'{"id": 1}', b'{"id": 2}'])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.jsonl").write_text('{"id": 10}\n')
    app = App("a", Route("files", Files(str(tmp_path / "files"), PLAIN)).filter(body.id > 0).to("x"),
              Route("log", source).filter(body.id > 0).to("x"), sinks={"x": Files(str(tmp_path / "x"))})  # fmt: skip
    assert is_direct(app.plan, targets(app.plan))

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


def test_a_stream_goes_on_the_other_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An app may become one that tasks can run, or cease to be one: its position means the same."""
    source = filled(tmp_path, [b'{"id": %d}' % number for number in range(4)])
    app = App("a", Route("r", source).filter(body.id >= 0).to("x", Files(str(tmp_path / "x"))))
    for number, chosen in enumerate((lambda *_: False, is_direct, lambda *_: False)):
        monkeypatch.setattr(stream, "is_direct", chosen)
        run_stream(app, str(tmp_path / "position"), once=True, spark=spark)
        with OpenLog(tmp_path / "log") as log:
            log.append("in", 0, Frame.pack([b'{"id": %d}' % (4 + number)])).result()
    assert [json.loads(line)["id"] for line in lines(tmp_path / "x")] == list(range(6))


def test_where_a_stream_began_is_noted_before_its_first_batch(tmp_path: Path) -> None:
    source = filled(tmp_path, [b"{}"] * 3)
    entry = App("a", Route("r", source).to("x", Files("x"))).plan.entries[0]
    begun = LogStream(entry, str(tmp_path / "notes" / "r.start"), 10, 2)
    begun.beginning = lambda: {"0": 2}  # type: ignore[method-assign]
    assert begun.initialOffset() == {"0": 2}
    assert LogStream(entry, str(tmp_path / "notes" / "r.start"), 10, 2).initialOffset() == {"0": 2}


def test_offsets_that_are_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n-\n{"0": 3}')
    (tmp_path / "offsets" / "1").write_text("v9\n{}\n{}")
    assert Journal(str(tmp_path)).reached(0) == [None, {"0": 3}]
    for number in (1, 2):
        with pytest.raises(BadEndpoint, match=f"cannot read .*offsets/{number}: "):
            Journal(str(tmp_path)).reached(number)


@pytest.mark.parametrize("source", [Files("in", PLAIN), Log("in", PLAIN), KafkaTopic("in", PLAIN)], ids=str)
def test_these_sources_are_read_by_tasks(source: Any) -> None:
    chosen = App("a", Route("r", source).filter(body.id > 0).to("x", Log("x", at="other")))
    assert is_direct(chosen.plan, targets(chosen.plan))


def test_a_sink_that_keeps_headers_goes_through_spark() -> None:
    chosen = App("a", Route("r", Log("in", PLAIN)).to("x", Log("x", at="other", headers=True)))
    assert not is_direct(chosen.plan, targets(chosen.plan))


def test_nothing_is_computed_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    compute = DirectStream.compute

    def counted(self: DirectStream, number: int, staging: Any) -> Any:
        numbers.append(number)
        return compute(self, number, staging)

    monkeypatch.setattr(DirectStream, "compute", counted)
    source = filled(tmp_path, [b"{}"] * 7)
    done = run_stream(App("a", Route("r", source).to("x", Files(str(tmp_path / "x")))), once=True, spark=spark,
                      rows_per_batch=3)  # fmt: skip
    assert numbers == [0, 1, 2]
    assert done.summary.received == 7


def test_tasks_do_not_get_the_secrets_of_sinks(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled: list[bytes] = []
    monkeypatch.setattr(DirectRun, "_tasks", lambda self, task, count: pickled.append(cloudpickle.dumps(task)) or [])
    sink = KafkaTopic("x", servers="host:1", options={"sasl.password": "hidden"})
    app = App("a", Route("r", Files("in", PLAIN)).to("x", sink), dead_letters=Log("dead", at="host:2", token="hidden"))
    outlets = targets(app.plan)
    assert b"hidden" in cloudpickle.dumps(outlets)
    DirectRun(spark, app.plan, outlets).compute([[]], Staging("k", "scratch", "lasting"))
    assert len(pickled) == 1
    assert b"hidden" not in pickled[0]


def test_a_stream_whose_position_was_deleted_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    source = filled(tmp_path, [b'{"id": 1}'])
    app = App("a", Route("r", source).to("x", Files(str(tmp_path / "x"))))
    notes = tmp_path / "position" / "penstock-sources"
    notes.mkdir(parents=True)
    (notes / "r.start").write_text('{"0": 1}')
    run_stream(app, str(tmp_path / "position"), once=True, spark=spark)
    assert lines(tmp_path / "x") == [b'{"id": 1}']
    assert json.loads((notes / "r.start").read_text()) == {"0": 0}


@pytest.mark.parametrize("way", [is_direct, lambda *_: False], ids=["direct", "rows"])
def test_a_checkpoint_may_have_any_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[..., bool]
) -> None:
    monkeypatch.setattr(stream, "is_direct", way)
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
    source = FilesStream(entry, str(tmp_path / "r.jsonl"))
    assert source.latestOffset({"chunks": 0}, source.getDefaultReadLimit()) == {"chunks": 1}
    with pytest.raises(BadEndpoint, match=r"come to chunk 2, and .*r\.jsonl knows 1"):
        source.between({"chunks": 0}, {"chunks": 2})
    with pytest.raises(BadEndpoint, match=r"come to chunk 2, and .*r\.jsonl knows 1"):
        source.latestOffset({"chunks": 2}, source.getDefaultReadLimit())


def test_what_is_known_of_a_position_is_kept_while_spark_has_any_of_it(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    assert not journal.has_begun
    (tmp_path / "offsets").mkdir()
    assert not journal.has_begun
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n-")
    assert journal.has_begun

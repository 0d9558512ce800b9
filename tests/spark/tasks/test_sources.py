"""Every kind of source in the tasks that read: alone and together, in a run and as a stream."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock import (
    App,
    Files,
    Frame,
    Json,
    Memory,
    Message,
    Parquet,
    Rate,
    Route,
    Table,
    Void,
    body,
    collect,
    header,
)
from penstock.endpoints.base import Source
from penstock.errors import BadEndpoint, PenstockError
from penstock.message import Position
from penstock.spark.run import RunResult, run_batch
from penstock.spark.stream import run_stream
from tests.spark.tasks.routes import lines

PLAIN = Json("id BIGINT, who STRING")


def numbered(number: int) -> bytes:
    return b'{"id": %d}' % number


def table(path: Path, *numbers: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": list(numbers)}), path)
    return path


def frame(spark: SparkSession, *numbers: int) -> DataFrame:
    return spark.createDataFrame([(f'{{"id": {number}}}',) for number in numbers], "value STRING")


def found(result: RunResult, channel: str = "x") -> list[int]:
    assert result.summary.conserved
    return sorted(json.loads(message.raw)["id"] for message in result.channels[channel])


def stream(app: App, home: Path, spark: SparkSession, rows: int = 100_000) -> RunResult:
    return run_stream(app, str(home / "position"), once=True, spark=spark, rows_per_batch=rows)


def kept(source: Source) -> App:
    return App("a", Route("r", source).filter(body.id >= 0).to("x", Memory()), dead_letters=Memory())


def test_a_list_is_a_stream_with_all_that_its_messages_have(spark: SparkSession, tmp_path: Path) -> None:
    own = Message("own", b'{"id": 1}', headers={"region": "EU"}, attachments={"scan": b"\x00\xff"})
    listed: list[Any] = [own, {"id": 2}, "broken", {"id": 3}]
    app = App("a", Route("r", Memory(listed, PLAIN, partitions=2)).enrich({"region": header.region}).to("x", Memory()),
              dead_letters=Memory())  # fmt: skip
    result = stream(app, tmp_path, spark, rows=3)
    first, second, third = result.channels["x"]
    assert (first.id, first.headers, first.attachments) == ("own", {"region": "EU"}, {"scan": b"\x00\xff"})
    assert json.loads(first.raw) == {"id": 1, "region": "EU"}
    assert (second.id, second.position) == ("r/0/1", Position("r", 0, 1))
    assert third.id == "r/0/3"
    assert [(one.message.id, one.message.raw) for one in result.dead] == [("r/0/2", b"broken")]
    assert (result.summary.received, result.summary.batches) == (4, 2)


def test_a_list_goes_on_where_it_was_unless_it_is_shorter(spark: SparkSession, tmp_path: Path) -> None:
    assert found(stream(kept(Memory([{"id": 1}, {"id": 2}], PLAIN)), tmp_path, spark)) == [1, 2]
    assert found(stream(kept(Memory([{"id": 1}, {"id": 2}, {"id": 3}], PLAIN)), tmp_path, spark)) == [3]
    with pytest.raises(PenstockError) as caught:
        stream(kept(Memory([{"id": 1}], PLAIN)), tmp_path, spark)
    assert "the stream has read 3 messages of the list of route 'r', which has 1" in str(caught.value)
    assert "give the list as it was, with more behind it, or start with a new checkpoint" in str(caught.value)


def test_an_empty_list_is_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    assert stream(kept(Memory([], PLAIN)), tmp_path, spark).summary.received == 0


def test_a_rate_is_cut_into_batches_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    first = stream(kept(Rate(count=2500, message=numbered, format=PLAIN)), tmp_path, spark, rows=1200)
    assert found(first) == list(range(2500))
    assert {message.id for message in first.channels["x"]} == {f"rate/0/{number}" for number in range(2500)}
    assert (first.summary.received, first.summary.batches) == (2500, 3)
    more = stream(kept(Rate(count=2503, message=numbered, format=PLAIN)), tmp_path, spark)
    assert found(more) == [2500, 2501, 2502]


@pytest.mark.parametrize("kind", [Parquet, Table])
def test_new_files_of_a_table_are_read_once(kind: Any, spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "orders"
    source = Parquet(home, "id BIGINT") if kind is Parquet else Table("orders", "id BIGINT", warehouse=str(tmp_path))
    home.mkdir()
    assert stream(kept(source), tmp_path, spark).summary.received == 0
    table(home / "b.parquet", 1, 2)
    (home / "_SUCCESS").touch()
    result = stream(kept(source), tmp_path, spark)
    assert [message.id for message in result.channels["x"]] == ["b.parquet/0/0", "b.parquet/0/1"]
    table(home / "a.parquet", 3)
    table(home / "day=1" / "a.parquet", 4)
    assert found(stream(kept(source), tmp_path, spark)) == [3, 4]
    assert stream(kept(source), tmp_path, spark).summary.received == 0


def test_micro_batches_of_a_table_have_about_so_many_bytes(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        table(tmp_path / "in" / f"{number}.parquet", number)
    app = kept(Parquet(tmp_path / "in"))
    result = run_stream(app, once=True, spark=spark, bytes_per_batch=1)
    assert (result.summary.batches, found(result)) == (3, [0, 1, 2])


def test_a_position_of_an_earlier_version_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table(tmp_path / "in" / "a.parquet", 1)
    app = kept(Parquet(tmp_path / "in"))
    stream(app, tmp_path, spark)
    offsets = tmp_path / "position" / "offsets" / "0"
    offsets.write_text(offsets.read_text().replace('{"chunks": 1}', '{"logOffset":0}'))
    with pytest.raises(BadEndpoint) as caught:
        stream(app, tmp_path, spark)
    assert str(caught.value) == (
        "BadEndpoint: the stream stopped: the checkpoint has a position of another kind: {'logOffset': 0}, as an"
        " earlier version wrote it\n"
        "  fix  start with a new checkpoint; what was read already is read again, unless you move it elsewhere"
    )


@pytest.mark.parametrize("streaming", [False, True])
def test_a_table_that_is_not_there_is_named(streaming: bool, spark: SparkSession, tmp_path: Path) -> None:
    app = kept(Table("orders", "id BIGINT", warehouse=str(tmp_path)))
    with pytest.raises(PenstockError) as caught:
        stream(app, tmp_path, spark) if streaming else run_batch(app, spark)
    assert str(caught.value) == (
        f"BadEndpoint: route 'r' reads {tmp_path}/orders, and there is no such file\n"
        "  fix  check the path; it is relative to where you run"
    )


def test_an_empty_table_and_an_empty_dataframe_have_no_messages(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for source in (Parquet(tmp_path / "in", "id BIGINT"), Frame(frame(spark), PLAIN)):
        result = run_batch(kept(source), spark)
        assert (result.summary.received, result.channels, result.summary.conserved) == (0, {"x": []}, True)


def test_a_file_of_another_type_stops_the_run_and_is_named(spark: SparkSession, tmp_path: Path) -> None:
    table(tmp_path / "in" / "a.parquet", 1)
    pq.write_table(pa.table({"id": ["one"]}), tmp_path / "in" / "b.parquet")
    app = App("a", Route("r", Parquet(tmp_path / "in")).to("x", Files(tmp_path / "x")))
    with pytest.raises(PenstockError) as caught:
        run_batch(app, spark)
    assert f"column 'id' of {tmp_path}/in/b.parquet is STRING, but the schema says BIGINT" in str(caught.value)
    assert not list((tmp_path / "x").glob("*.jsonl"))


def test_a_dataframe_that_fails_stops_the_run_and_says_why(spark: SparkSession, tmp_path: Path) -> None:
    wrong = spark.range(3).selectExpr("CAST(1 / (id - 1) AS STRING) AS value")
    with pytest.raises(PenstockError, match=r"the run stopped: .*DIVIDE_BY_ZERO"):
        run_batch(App("a", Route("r", Frame(wrong, PLAIN)).to("x", Files(tmp_path / "x"))), spark)
    assert not list((tmp_path / "x").glob("*.jsonl"))


def every_kind(home: Path, *, files: Source, parquet: Source, rate: Source, first: Source, second: Source) -> App:
    """DataFrames stand before and between the others."""
    routes = {"first": first, "files": files, "parquet": parquet, "second": second, "rate": rate}
    return App(
        "a",
        *(Route(name, source).filter(body.id != 13).to("x") for name, source in routes.items()),
        sinks={"x": Files(home / "x")},
        dead_letters=Memory(),
    )


def ids(home: Path) -> list[int]:
    return sorted(json.loads(line)["id"] for line in lines(home / "x"))


def test_sources_of_every_kind_run_together(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"id": 1}\nbroken\n')
    app = every_kind(
        tmp_path,
        files=Files(tmp_path / "in.jsonl", PLAIN),
        parquet=Parquet(table(tmp_path / "in.parquet", 2, 3)),
        rate=Rate(count=2, message=numbered, format=PLAIN),
        first=Frame(frame(spark, 10, 11, 12, 13).repartition(3), PLAIN),
        second=Frame(frame(spark, 20).withColumnRenamed("value", "payload"), PLAIN, column="payload"),
    )
    result = run_batch(app, spark)
    assert ids(tmp_path) == [0, 1, 1, 2, 3, 10, 11, 12, 20]
    assert (result.summary.received, result.summary.dead, result.summary.conserved) == (11, 1, True)
    assert result.summary.filtered == {"first.filter": 1}
    assert result.summary.steps["first.decode"].received == 4


def streamed(spark: SparkSession, directory: Path, **columns: str) -> DataFrame:
    """A DataFrame whose every file is a micro-batch."""
    schema = ", ".join(f"{name} {kind}" for name, kind in {"value": "STRING", **columns}.items())
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(directory))


def put(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def value(number: int, **more: Any) -> dict[str, Any]:
    return {"value": json.dumps({"id": number}), **more}


def test_streams_of_every_kind_run_together_and_go_on(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "files" / "a.jsonl", {"id": 1})
    put(tmp_path / "one" / "a.json", value(10), value(13))
    put(tmp_path / "two" / "a.json", value(20))
    table(tmp_path / "parquet" / "a.parquet", 2)
    both = streamed(spark, tmp_path / "one").union(streamed(spark, tmp_path / "two"))
    app = every_kind(
        tmp_path,
        files=Files(tmp_path / "files", PLAIN),
        parquet=Parquet(tmp_path / "parquet"),
        rate=Rate(count=2, message=numbered, format=PLAIN),
        first=Frame(both, PLAIN),
        second=Frame(streamed(spark, tmp_path / "two"), PLAIN),
    )
    first = stream(app, tmp_path, spark)
    assert ids(tmp_path) == [0, 1, 1, 2, 10, 20, 20]
    assert (first.summary.received, first.summary.filtered, first.summary.conserved) == (8, {"first.filter": 1}, True)
    put(tmp_path / "files" / "b.jsonl", {"id": 3})
    put(tmp_path / "two" / "b.json", value(21))
    again = stream(app, tmp_path, spark)
    assert ids(tmp_path) == [0, 1, 1, 2, 3, 10, 20, 20, 21, 21]
    assert (again.summary.received, again.summary.conserved) == (3, True)
    assert stream(app, tmp_path, spark).summary.received == 0


def test_rows_of_a_stream_keep_what_they_know(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.json", value(1, id="one", headers={"region": "EU"}, topic="t", partition=3, offset=40),
        value(2, id="two"))  # fmt: skip
    given = {"id": "STRING", "headers": "MAP<STRING, STRING>", "topic": "STRING", "partition": "INT", "offset": "INT"}
    result = stream(kept(Frame(streamed(spark, tmp_path / "in", **given), PLAIN)), tmp_path, spark)
    one, two = sorted(result.channels["x"], key=lambda message: message.id)
    assert (one.id, one.headers, one.position) == ("one", {"region": "EU"}, Position("t", 3, 40))
    assert (two.id, two.headers, two.position) == ("two", {}, Position("", 0, 0))


def test_a_batch_that_is_run_again_leaves_what_it_left(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.json", value(1), value(2))
    put(tmp_path / "files" / "a.jsonl", {"id": 3})
    source = Frame(streamed(spark, tmp_path / "in"), PLAIN, replays=True)
    app = App("a", Route("frame", source).to("x"), Route("files", Files(tmp_path / "files", PLAIN)).to("x"),
              sinks={"x": Files(tmp_path / "x")})  # fmt: skip
    assert stream(app, tmp_path, spark).summary.received == 3
    before = {path.name: path.read_bytes() for path in (tmp_path / "x").glob("*.jsonl")}
    assert sorted(b"".join(before.values()).splitlines()) == [b'{"id": 1}', b'{"id": 2}', b'{"id": 3}']
    shutil.rmtree(tmp_path / "position" / "commits")
    shutil.rmtree(tmp_path / "position" / "penstock-batches")
    assert stream(app, tmp_path, spark).summary.received == 3
    assert {path.name: path.read_bytes() for path in (tmp_path / "x").glob("*.jsonl")} == before


def test_the_place_of_a_row_is_its_id_if_it_has_no_other(spark: SparkSession) -> None:
    rows = [('{"id": 1}', "t", 2, 7), ('{"id": 2}', None, 2, 8), ('{"id": 3}', "t", None, None), (None, "t", 1, 1)]
    data = spark.createDataFrame(rows, "value STRING, topic STRING, partition INT, offset INT").coalesce(1)
    more = data.selectExpr("*", "TIMESTAMP '2020-01-02 03:04:05' AS time", "map('scan', X'00FF') AS attachments")
    result = run_batch(kept(Frame(more, PLAIN)), spark)
    assert [message.id for message in result.channels["x"]] == ["t/2/7", "2/8", "t/0"]
    assert {message.time for message in result.channels["x"]} == {datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)}
    assert [message.attachments for message in result.channels["x"]] == [{"scan": b"\x00\xff"}] * 3
    assert [(one.message.id, one.message.raw) for one in result.dead] == [("t/1/1", b"")]


def test_steps_remember_what_dataframes_had(spark: SparkSession, tmp_path: Path) -> None:
    def app(source: Source) -> App:
        groups = Route("r", source).aggregate(collect("ids", of="id"), by=body.who, size=2, on_stop="hold")
        return App("a", groups.to("x", Files(tmp_path / "x")), dead_letters=Memory())

    def people(*numbers: int) -> list[dict[str, Any]]:
        return [{"value": json.dumps({"id": number, "who": "ab"[number % 2]})} for number in numbers]

    batch = spark.createDataFrame([(row["value"],) for row in people(*range(40))], "value STRING").repartition(4)
    done = run_batch(app(Frame(batch, PLAIN)), spark)
    assert (done.summary.received, done.summary.delivered, done.summary.conserved) == (40, {"x": 20}, True)
    assert sorted(one for line in lines(tmp_path / "x") for one in json.loads(line)["ids"]) == list(range(40))

    put(tmp_path / "in" / "1.json", *people(1, 2, 3))
    source = Frame(streamed(spark, tmp_path / "in"), PLAIN)
    first = stream(app(source), tmp_path, spark)
    assert (first.summary.received, first.summary.delivered, first.summary.held) == (3, {"x": 1}, 1)
    put(tmp_path / "in" / "2.json", *people(4))
    second = stream(app(source), tmp_path, spark)
    assert (second.summary.received, second.summary.delivered, second.summary.held) == (1, {"x": 1}, -1)
    assert sorted(json.loads(lines(tmp_path / "x")[-1])["ids"]) == [2, 4]


def test_files_of_all_tasks_have_names_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    routes = [Route(name, source).to("x") for name, source in (
        ("frame", Frame(frame(spark, *range(8)).repartition(4), PLAIN)),
        ("list", Memory([{"id": number} for number in range(8, 12)], PLAIN, partitions=2)))]  # fmt: skip
    run_batch(App("a", *routes, sinks={"x": Files(tmp_path / "x")}, dead_letters=Void()), spark)
    assert ids(tmp_path) == list(range(12))

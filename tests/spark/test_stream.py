"""Streams: the same app as in batch, restarts and replays that change nothing, and ends that are clean."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import App, Csv, Files, Json, Memory, Parquet, Rate, Route, Table, Void, body, call, function
from penstock.bench.memory import resident
from penstock.errors import PenstockError
from penstock.spark.read.files import FilePieces, FilesStream
from penstock.spark.run import RunResult, run_batch
from penstock.spark.stream import run_stream
from penstock.summary import Summary
from tests.spark.files import contents, records

ORDER = Json("id BIGINT, note STRING")


def write(path: Path, *ids: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": number}) + "\n" for number in ids))


def every_sink(home: Path) -> App:
    """Files in; lines, columns, a table and dead letters out."""
    route = Route("intake", Files(home / "in", ORDER)).filter(body.id != 0).enrich({"note": "seen"})
    return App(
        "orders",
        route.multicast("x", "y", "z"),
        sinks={"x": Files(home / "lines"), "y": Parquet(home / "columns"),
               "z": Table("orders", warehouse=str(home / "warehouse"))},
        dead_letters=Files(home / "dead"),
    )  # fmt: skip


def written(home: Path) -> dict[str, bytes]:
    return {name: raw for name, raw in contents(home).items() if not name.startswith(("in/", "checkpoint/"))}


def test_the_same_app_gives_the_same_channels_in_batch_and_as_a_stream(spark: SparkSession) -> None:
    given = [{"id": number, "note": "x" * (number % 3)} for number in range(12)] + ["broken", {"id": "wrong"}]
    app = App(
        "same",
        Route("r", Memory(given, ORDER)).filter(body.id != 3).choice({"low": body.id < 6}, otherwise="high"),
        Route("halve", "low").translate({"half": body.id / 2}).to("halves", Memory()),
        sinks={"high": Memory()}, dead_letters=Memory(),
    )  # fmt: skip
    seen: list[Summary] = []
    batch = run_batch(app, spark)
    streamed = run_stream(app, once=True, spark=spark, rows_per_batch=5, on_batch=seen.append)

    def outcome(result: RunResult) -> Any:
        channels = {name: sorted((m.id, m.raw) for m in messages) for name, messages in result.channels.items()}
        return channels, sorted((d.message.id, d.message.raw, d.step, d.error, d.reason) for d in result.dead)

    assert outcome(streamed) == outcome(batch)
    assert len(batch.channels["halves"]) == 5
    assert (streamed.summary.batches, batch.summary.batches) == (3, 1)
    assert [summary.received for summary in seen] == [5, 10, 14]
    assert streamed.summary.filtered == batch.summary.filtered == {"r.filter": 1}
    assert streamed.summary.conserved


def test_a_stream_continues_and_a_replayed_batch_changes_no_sink(spark: SparkSession, tmp_path: Path) -> None:
    app, checkpoint = every_sink(tmp_path), tmp_path / "checkpoint"
    write(tmp_path / "in" / "a.jsonl", 1, 2, 0, "x")
    first = run_stream(app, str(checkpoint), once=True, spark=spark)
    assert (first.summary.received, first.summary.dead) == (4, 1)
    again = run_stream(app, str(checkpoint), once=True, spark=spark)
    assert again.summary.received == 0

    write(tmp_path / "in" / "b.jsonl", 3, "y")
    second = run_stream(app, str(checkpoint), once=True, spark=spark)
    assert second.summary.received == 2
    assert [record["id"] for record in records(tmp_path / "lines")] == [1, 2, 3]
    assert sorted(letter["body"] for letter in records(tmp_path / "dead")) == ['{"id": "x"}', '{"id": "y"}']

    before = written(tmp_path)
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    replayed = run_stream(app, str(checkpoint), once=True, spark=spark)
    assert replayed.summary.received == 2
    assert last.exists()
    assert written(tmp_path) == before


def test_another_stream_of_the_same_app_adds_to_the_sinks(spark: SparkSession, tmp_path: Path) -> None:
    app = every_sink(tmp_path)
    write(tmp_path / "in" / "a.jsonl", 1, "x")
    for name in ("one", "two"):
        run_stream(app, str(tmp_path / "checkpoint" / name), once=True, spark=spark)
    assert [record["id"] for record in records(tmp_path / "lines")] == [1, 1]
    assert len(records(tmp_path / "dead")) == 2


def test_a_stream_is_computed_once_whatever_the_number_of_branches(spark: SparkSession, tmp_path: Path) -> None:
    calls, rows = tmp_path / "calls", tmp_path / "rows"

    def counted(number: int) -> int:
        with open(calls, "a") as file:
            file.write(f"{number}\n")
        return number

    def scripted(table: pa.Table) -> pa.Table:
        with open(rows, "a") as file:
            file.writelines(f"{number}\n" for number in table["id"].to_pylist())
        return table.select(["id", "same"])

    app = App(
        "once",
        Route("r", Memory([{"id": number} for number in range(10)], ORDER))
        .enrich({"same": function(counted, body.id, returns="BIGINT")})
        .script(scripted, "id BIGINT, same BIGINT")
        .multicast("a", "b", "c", "d"),
        Route("ra", "a").filter(body.same > 4).to("one", Files(tmp_path / "one")),
        Route("rb", "b").choice({"two": body.same < 3}, otherwise="three"),
        Route("rc", "c").translate({"next": body.same + 1}).to("four", Parquet(tmp_path / "four")),
        Route("rd", "d").to("five", Memory()),
        sinks={"two": Memory(), "three": Void()}, dead_letters=Files(tmp_path / "dead"),
    )  # fmt: skip
    result = run_stream(app, once=True, spark=spark, rows_per_batch=4)
    once_each = Counter({str(number): 1 for number in range(10)})
    assert Counter(calls.read_text().split()) == once_each
    assert Counter(rows.read_text().split()) == once_each
    assert result.summary.delivered == {"one": 5, "two": 3, "three": 7, "four": 10, "five": 10}
    assert result.summary.batches == 3
    assert result.summary.conserved


def test_a_stream_ends_cleanly_when_asked_and_its_memory_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    stop, sizes = threading.Event(), []

    def watch(summary: Summary) -> None:
        sizes.append(resident()[0])
        if summary.batches == 8:
            stop.set()

    app = App("steady", Route("r", Rate(per_second=200)).filter(call("modulo", body.value, 2) == 0).to("x", Void()),
              dead_letters=Files(tmp_path / "dead"))  # fmt: skip
    result = run_stream(app, str(tmp_path / "checkpoint"), spark=spark, on_batch=watch, stop=stop)
    assert result.summary.batches >= 8
    assert result.summary.conserved
    assert result.summary.received > 8
    assert result.channels == {"x": []}
    assert sizes[-1] - sizes[2] < 30
    assert not any(query.name == "steady" for query in spark.streams.active)


def test_an_empty_directory_is_a_stream_without_messages(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    result = run_stream(every_sink(tmp_path), str(tmp_path / "checkpoint"), once=True, spark=spark)
    assert result.summary.received == 0
    assert written(tmp_path) == {}


def test_a_late_file_that_does_not_fit_is_named_and_read_once_it_is_mended(tmp_path: Path) -> None:
    source = Files(tmp_path, Csv("id BIGINT, note STRING"))
    app = App("csv", Route("r", source).to("x", Memory()), dead_letters=Void())
    entry = app.plan.entries[0]
    reader = FilesStream(FilePieces(entry), str(tmp_path / "_notes" / "r.jsonl"))
    wrong = tmp_path / "late.csv"
    wrong.write_text("note,id\nb,2\n")
    with pytest.raises(PenstockError) as caught:
        reader.latestOffset({"chunks": 0}, reader.getDefaultReadLimit())
    assert caught.value.what == f"the header of {wrong} is note, id, but the schema has id, note"
    wrong.write_text("id,note\n2,b\n")
    assert reader.latestOffset({"chunks": 0}, reader.getDefaultReadLimit()) == {"chunks": 1}


def test_a_failing_batch_stops_the_stream_and_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    app = every_sink(tmp_path)
    write(tmp_path / "in" / "a.jsonl", 1)
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(b"not packed")
    with pytest.raises(PenstockError) as caught:
        run_stream(app, str(tmp_path / "checkpoint"), once=True, spark=spark)
    assert str(caught.value) == (
        f"BadEndpoint: the stream stopped: cannot read {tmp_path}/in/b.jsonl.gz: Not a gzipped file (b'no')\n"
        "  fix  the checkpoint is kept: mend the cause and start it again"
    )
    assert written(tmp_path) == {}
    assert not list(tmp_path.rglob("_staging"))
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(gzip.compress(b'{"id": 2}'))
    run_stream(app, str(tmp_path / "checkpoint"), once=True, spark=spark)
    assert sorted(record["id"] for record in records(tmp_path / "lines")) == [1, 2]


def test_half_a_line_in_the_log_of_files_is_forgotten(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.jsonl", 1)
    log = tmp_path / "notes" / "r.jsonl"
    entry = every_sink(tmp_path).plan.entries[0]
    reader = FilesStream(FilePieces(entry), str(log))
    assert reader.latestOffset({"chunks": 0}, reader.getDefaultReadLimit()) == {"chunks": 1}
    log.write_text(log.read_text() + '{"path": "/hal')
    write(tmp_path / "in" / "b.jsonl", 2)
    assert reader.latestOffset({"chunks": 1}, reader.getDefaultReadLimit()) == {"chunks": 2}
    assert [Path(chunk.path).name for chunk in reader.between({"chunks": 0}, {"chunks": 2})] == ["a.jsonl", "b.jsonl"]

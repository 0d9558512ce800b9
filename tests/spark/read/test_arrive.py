"""DataFrames, lists and tables as sources, and what they say when they do not fit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from penstock import App, Frame, Json, Memory, Message, Parquet, Route, Table, Void, body, header
from penstock.errors import PenstockError
from penstock.message import Position
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream

ORDER = Json("id BIGINT, note STRING")


def said(app: App, spark: SparkSession, streaming: bool = False) -> str:
    with pytest.raises(PenstockError) as caught:
        run_stream(app, spark=spark, once=True) if streaming else run_batch(app, spark)
    return str(caught.value)


def test_frames_lists_and_tables_arrive_with_all_they_know(spark: SparkSession, tmp_path: Path) -> None:
    text = spark.createDataFrame([('{"id": 1}',), ('{"id": 2}',)], "value string").coalesce(1)
    known = spark.createDataFrame(
        [("seven", b'{"id": 7}', {"region": "EU"}, "t", 3, 40), ("eight", b'{"id": 8}', {"region": "US"}, "t", 3, 41)],
        "id string, payload binary, headers map<string,string>, topic string, partition int, offset bigint",
    )
    listed = Message("own", b'{"id": 9}', headers={"region": "EU"}, attachments={"scan": b"\x00\xff"})
    columns = {"id": pa.array([5, 6], pa.int32()), "note": ["five", None], "more": [[1.5], []], "unused": [1, 2]}
    parquet.write_table(pa.table(columns), tmp_path / "table.parquet")
    typed = Parquet(tmp_path / "table.parquet", "id BIGINT, note STRING, more ARRAY<DOUBLE>, absent STRING")
    payload = Frame(known, ORDER, column="payload")
    app = App(
        "arrivals",
        Route("text", Frame(text, ORDER)).filter(body.id > 1).to("text out", Memory()),
        Route("known", payload).filter(header["region"] == "EU").to("known out", Memory()),
        Route("listed", Memory((listed, {"id": 10}), ORDER)).filter("header.region = 'EU'").to("listed out", Memory()),
        Route("table", typed).filter(body.id > 0).to("table out", Memory()),
        Route("inferred", Parquet(tmp_path / "table.parquet")).filter(body.unused > 1).to("inferred out", Memory()),
        dead_letters=Memory(),
    )  # fmt: skip
    result = run_batch(app, spark)

    assert [(message.id, message.raw) for message in result.channels["text out"]] == [("/0/1", b'{"id": 2}')]
    (seven,) = result.channels["known out"]
    assert (seven.id, seven.raw, seven.headers) == ("seven", b'{"id": 7}', {"region": "EU"})
    assert seven.position == Position("t", 3, 40)
    (own,) = result.channels["listed out"]
    assert (own.id, own.headers, own.attachments) == ("own", {"region": "EU"}, {"scan": b"\x00\xff"})
    assert sorted(message.raw for message in result.channels["table out"]) == [
        b'{"id":5,"note":"five","more":[1.5]}', b'{"id":6,"more":[]}',
    ]  # fmt: skip
    assert [message.raw for message in result.channels["inferred out"]] == [b'{"id":6,"more":[],"unused":2}']
    assert result.summary.filtered == {"text.filter": 1, "known.filter": 1, "listed.filter": 1, "inferred.filter": 1}
    assert result.summary.conserved
    assert not result.dead


def test_a_table_holds_what_was_sent_to_it(spark: SparkSession, tmp_path: Path) -> None:
    table = Table("orders", warehouse=str(tmp_path))
    sent = ({"id": 1, "note": "a"}, {"id": 2}, {"id": "wrong"})
    run_batch(App("fill", Route("r", Memory(sent, ORDER)).to("t", table), dead_letters=Memory()), spark)
    read = App("read", Route("r", table).filter(body.id > 1).to("x", Memory()), dead_letters=Memory())
    assert read.plan.entries[0].format.schema == ORDER.schema
    result = run_batch(read, spark)
    assert [message.raw for message in result.channels["x"]] == [b'{"id":2}']
    assert result.summary.received == 2


def test_a_frame_without_the_column_is_refused(spark: SparkSession) -> None:
    app = App("a", Route("r", Frame(spark.range(1), ORDER)).to("x", Void()))
    assert said(app, spark) == (
        "UnknownField: the DataFrame of route 'r' has no column 'value'\n"
        "  fix  name the column with the raw bodies; it has id"
    )


def test_a_frame_of_the_other_kind_is_refused(spark: SparkSession) -> None:
    batch = App("a", Route("r", Frame(spark.createDataFrame([("x",)], "value string"), ORDER)).to("x", Void()))
    assert said(batch, spark, streaming=True) == (
        "BadEndpoint: route 'r' reads a batch DataFrame in a streaming run\n  fix  make it with spark.readStream"
    )
    stream = spark.readStream.format("rate").load().selectExpr("CAST(value AS string) AS value")
    assert said(App("a", Route("r", Frame(stream, ORDER)).to("x", Void())), spark) == (
        "BadEndpoint: route 'r' reads a streaming DataFrame in a batch run\n  fix  run it as a stream"
    )

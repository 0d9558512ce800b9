"""Every sink in one run: what is in it, and nothing else beside it."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from lxml import etree
from pyspark.sql import SparkSession

from penstock import (
    App,
    Console,
    Csv,
    Files,
    Json,
    Memory,
    Message,
    Parquet,
    Route,
    Table,
    Text,
    Void,
    Xml,
    body,
    call,
    function,
)  # fmt: skip
from penstock.errors import PenstockError
from penstock.spark.run import RunResult, run_batch
from tests.spark.files import contents, lines, records

ORDER = Json("id BIGINT, note STRING, tags ARRAY<STRING>")
PRETTY = b'{\n  "id": 1,\r\n  "note": "a",   "unknown": [1 ]\n}'
QUOTED = json.dumps({"id": 2, "note": 'say "hi",\nüber'}, ensure_ascii=False).encode()
BROKEN = b'{"id": \xff}'
MESSAGES = (
    Message("one", PRETTY, headers={"h": "1"}), QUOTED, {"id": 3},
    Message("four", BROKEN, headers={"region": "EU"}, attachments={"scan": b"\x01"}), {"id": "x"},
)  # fmt: skip


class Written:
    """The directories, the result and the console of the one run."""

    def __init__(self, home: Path, result: RunResult, printed: str) -> None:
        self.home, self.result, self.printed = home, result, printed


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Written:
    home = tmp_path_factory.mktemp("sinks")
    flat = Csv("id BIGINT, note STRING")
    document = Xml("id BIGINT, note STRING", root="order")
    start = Route("start", Memory(MESSAGES, ORDER)).filter(body.id > 0)
    parts = Route("splitting", "split").enrich({"tags": "a,b"}).split(call("split", body.tags, ","), "tag", ["id"])
    app = App(
        "every-sink",
        start.multicast("lines", "columns", "table", "kept", "shown", "void", "narrow", "split"),
        Route("narrowing", "narrow").keep("id", "note").multicast("csv", "xml", "rewritten"),
        parts.to("parts"),
        sinks={
            "lines": Files(home / "lines"), "columns": Parquet(home / "columns"), "kept": Memory(),
            "table": Table("orders", warehouse=str(home / "warehouse")), "shown": Console(rows=2), "void": Void(),
            "csv": Files(home / "csv", flat), "xml": Files(home / "xml", document),
            "rewritten": Files(home / "rewritten"), "parts": Parquet(home / "parts"),
        },
        dead_letters=Files(home / "dead"),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr("builtins.print", lambda *words: said.append(" ".join(map(str, words))))
        result = run_batch(app, spark)
    return Written(home, result, "\n".join(said))


def test_a_body_that_nothing_rewrote_keeps_its_bytes_and_stays_one_line(written: Written) -> None:
    one_line = PRETTY.replace(b"\r", b" ").replace(b"\n", b" ")
    assert lines(written.home / "lines") == [one_line, QUOTED, b'{"id": 3}']
    assert written.result.channels["kept"][0].raw == PRETTY


def test_a_body_that_was_rewritten_is_json(written: Written) -> None:
    quoted = {"id": 2, "note": 'say "hi",\nüber'}
    assert records(written.home / "rewritten") == [{"id": 1, "note": "a"}, quoted, {"id": 3}]


def test_csv_has_a_header_and_quotes(written: Written) -> None:
    (path,) = (written.home / "csv").iterdir()
    with open(path, encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["id", "note"], ["1", "a"], ["2", 'say "hi",\nüber'], ["3", ""]]


def test_xml_is_one_document_of_elements(written: Written) -> None:
    (path,) = (written.home / "xml").iterdir()
    orders = etree.parse(str(path)).getroot()
    assert (orders.tag, [order.tag for order in orders]) == ("messages", ["order"] * 3)
    assert [order.findtext("note") for order in orders] == ["a", 'say "hi",\nüber', None]


def test_parquet_has_the_fields_as_columns_and_what_is_known(written: Written) -> None:
    table = parquet.read_table(written.home / "columns")
    assert table.column_names == ["id", "note", "tags", "_id", "_time", "_parent", "_index", "_count", "_headers"]
    assert table.column("id").to_pylist() == [1, 2, 3]
    assert table.column("_id").to_pylist() == ["one", "start/0/1", "start/0/2"]
    assert table.column("_headers").to_pylist() == [[("h", "1")], None, None]
    parts = parquet.read_table(written.home / "parts", columns=["id", "tag", "_parent", "_index", "_count"]).to_pylist()
    assert parts[:2] == [
        {"id": 1, "tag": "a", "_parent": "one", "_index": 0, "_count": 2},
        {"id": 1, "tag": "b", "_parent": "one", "_index": 1, "_count": 2},
    ]
    assert parquet.read_table(written.home / "warehouse" / "orders").num_rows == 3


def test_the_console_shows_the_first_messages_of_its_channel(written: Written) -> None:
    shown = PRETTY.decode()
    assert written.printed == f"shown  one  {shown}\nshown  start/0/1  {QUOTED.decode()}"
    assert "shown" not in {channel for channel, messages in written.result.channels.items() if messages}


def test_every_sink_is_counted(written: Written) -> None:
    summary = written.result.summary
    channels = ("lines", "columns", "table", "kept", "shown", "void", "csv", "xml", "rewritten")
    assert summary.delivered == {**dict.fromkeys(channels, 3), "parts": 6}
    assert (summary.received, summary.dead, summary.filtered) == (5, 2, {})
    assert summary.conserved


def test_a_dead_letter_file_says_everything(written: Written) -> None:
    letters = {letter["id"]: letter for letter in records(written.home / "dead")}
    four, wrong = letters["four"], letters["start/0/4"]
    assert datetime.fromisoformat(four.pop("time")).tzinfo is not None
    assert len(four.pop("letter")) == 16
    assert four == {
        "route": "start", "step": "decode", "error": "MalformedBody", "reason": "not UTF-8: byte 0xff at 7",
        "attempt": 1, "id": "four", "topic": "start", "partition": 0, "offset": 3, "headers": {"region": "EU"},
        "attachments": {"scan": "AQ=="}, "parent": None, "index": None, "count": None, "body": "eyJpZCI6IP99",
        "encoding": "base64", "fields": None,
    }  # fmt: skip
    assert (wrong["error"], wrong["body"], wrong["encoding"]) == ("WrongType", '{"id": "x"}', "utf-8")


def test_nothing_is_left_behind(written: Written) -> None:
    found = list(contents(written.home))
    assert not [name for name in found if "_staging" in name or name.startswith(".")]
    assert len(found) == 8
    assert not list(written.home.rglob("_staging"))


def test_append_keeps_and_overwrite_replaces(spark: SparkSession, tmp_path: Path) -> None:
    def run(*bodies: str) -> None:
        route = Route("r", Memory(bodies, Text())).filter(body.value != "").multicast("kept", "new")
        sinks = {"kept": Files(tmp_path / "kept"), "new": Files(tmp_path / "new", mode="overwrite")}
        run_batch(App("a", route, sinks=sinks, dead_letters=Parquet(tmp_path / "dead")), spark)

    run("one", "two")
    (tmp_path / "new" / ".keep").write_text("not ours")
    run("three")
    assert sorted(lines(tmp_path / "kept")) == [b"one", b"three", b"two"]
    assert lines(tmp_path / "new") == [b"three"]
    run()
    assert lines(tmp_path / "new") == []
    assert sorted(contents(tmp_path / "new")) == [".keep"]
    assert not (tmp_path / "dead").exists()


def test_dead_letters_can_be_a_table(spark: SparkSession, tmp_path: Path) -> None:
    route = Route("r", Memory(MESSAGES, ORDER)).filter(body.id > 0).to("x", Void())
    before = datetime.now(UTC)
    run_batch(App("a", route, dead_letters=Parquet(tmp_path)), spark)
    letters = parquet.read_table(tmp_path).to_pylist()
    assert [letter["body"] for letter in letters] == [BROKEN, b'{"id": "x"}']
    assert letters[0]["attachments"] == [("scan", b"\x01")]
    assert letters[0]["headers"] == [("region", "EU")]
    assert (letters[0]["route"], letters[0]["step"], letters[0]["attempt"]) == ("r", "decode", 1)
    assert letters[0]["time"] >= before


def test_a_dead_letter_has_its_own_name_and_the_body_that_came_to_its_step(spark: SparkSession, tmp_path: Path) -> None:
    def fails(value: int) -> int:
        raise ValueError(value)

    source = Memory([{"id": 1, "tags": ["a", None]}], ORDER)
    parts = Route("r", source).split(body.tags, into="tag", head=["id", "note"])
    route = parts.enrich({"x": function(fails, body.id, returns="BIGINT")}).to("x", Void())
    for sink in (Files(tmp_path / "lines"), Parquet(tmp_path / "columns")):
        run_batch(App("a", route, dead_letters=sink), spark)
    for letters in (records(tmp_path / "lines"), parquet.read_table(tmp_path / "columns").to_pylist()):
        assert len({letter["letter"] for letter in letters}) == 2
        assert [json.loads(letter["fields"]) for letter in letters] == [
            {"id": 1, "note": None, "tag": "a"}, {"id": 1, "note": None, "tag": None},
        ]  # fmt: skip


def said(*routes: Route, **options: object) -> str:
    with pytest.raises(PenstockError) as caught:
        run_batch(App("a", *routes, **options))  # type: ignore[arg-type]
    return str(caught.value)


def test_sinks_that_would_spoil_files_are_refused_before_spark_starts(tmp_path: Path) -> None:
    source = Memory((), ORDER)
    both = Route("r", source).multicast("x", "y")
    same = {"x": Files(tmp_path / "out"), "y": Files(f"{tmp_path}/./out")}
    fix = "\n  fix  give each its own directory, or send the messages to one channel"
    text = said(both, sinks=same, dead_letters=Memory())
    assert text.startswith(f"BadEndpoint: channel 'x' writes to {tmp_path}/")
    assert text.endswith(f"out, and channel 'y' writes to it too{fix}")
    one = Route("r", source).to("x", Files(tmp_path / "out"))
    assert said(one, dead_letters=Files(tmp_path / "out")) == (
        f"BadEndpoint: channel 'x' writes to {tmp_path}/out, and the dead-letter channel writes to it too{fix}"
    )
    loop = Route("r", Files(tmp_path / "*.jsonl", ORDER)).to("x", Files(tmp_path))
    assert said(loop, dead_letters=Memory()) == (
        f"BadEndpoint: route 'r' reads {tmp_path}, and channel 'x' writes to it too{fix}"
    )
    (tmp_path / "file").write_text("")
    assert said(Route("r", source).to("x", Files(tmp_path / "file")), dead_letters=Memory()) == (
        f"BadEndpoint: channel 'x' writes to {tmp_path}/file, which is a file\n  fix  name a directory"
    )
    attributes = Memory((), Xml("_id STRING"))
    assert said(Route("r", attributes).to("x", Parquet(tmp_path / "p")), dead_letters=Memory()) == (
        "BadSchema: channel 'x' writes columns, and '_id' is one that Penstock adds itself\n"
        "  fix  translate the field to another name"
    )

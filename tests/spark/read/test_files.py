"""Files of every format through Spark: one run reads them all."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import App, Csv, Files, Json, Memory, Rate, Route, Text, Xml, body
from penstock.errors import PenstockError
from penstock.message import Position
from penstock.spark.read import files
from penstock.spark.read.files import FilePieces
from penstock.spark.run import RunResult, run_batch
from penstock.spark.tasks.readers import SourceReader

ORDER = Json("id BIGINT, note STRING")


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def order(number: int, note: str = "") -> bytes:
    return json.dumps({"id": number, "note": note}).encode()


@pytest.fixture(scope="module")
def result(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Every kind of file, each through its own route, in one run."""
    home = tmp_path_factory.mktemp("sources")
    write(home / "json" / "a.jsonl", order(1) + b"\n\n" + order(2) + b"\r\n")
    write(home / "json" / "b.jsonl", order(3))
    write(home / "json" / "c.jsonl.gz", gzip.compress(order(4) + b"\n" + order(5)))
    write(home / "json" / "d.jsonl", b"")
    write(home / "json" / "_hidden.jsonl", order(99))
    write(home / "json" / ".temporary", order(98))
    write(home / "text" / "one.txt", "grüße\n\r\nzwei".encode() + b"\n\xff\x00raw\n")
    write(home / "named.csv", b'\xef\xbb\xbfid,note\n1,"two\nlines"\n2,\n3,""\nx,wrong\n')
    write(home / "bare.csv", b"7;seven\n8;eight\n")
    write(home / "packed.csv.gz", gzip.compress(b"id,note\n9,nine\n"))
    write(home / "xml" / "good.xml", b'<order xmlns="urn:x" id="5"><note>hi</note></order>')
    write(home / "xml" / "broken.xml", b"<order>")
    write(home / "elements.xml", b'<all><order id="1"><note>a</note></order><order id="2"/></all>')

    def route(name: str, source: Files | Rate) -> Route:
        return Route(name, source).filter(body.id >= 0).to(f"{name} out", Memory())

    xml = Xml("_id BIGINT, note STRING")
    elements = Files(home / "elements.xml", xml, record="order")
    app = App(
        "every-file",
        route("json", Files(home / "json", ORDER)),
        Route("text", Files(home / "text" / "*.txt", Text())).filter(body.value != "").to("text out", Memory()),
        route("csv", Files(home / "named.csv", Csv("id BIGINT, note STRING"))),
        route("bare", Files(home / "bare.csv", Csv("id BIGINT, note STRING", delimiter=";", header=False))),
        route("packed", Files(home / "packed.csv.gz", Csv("id BIGINT, note STRING"))),
        Route("xml", Files(home / "xml", xml)).filter(body._id > 0).to("xml out", Memory()),
        Route("elements", elements).filter(body._id > 0).to("elements out", Memory()),
        Route("raw", Files(home / "json" / "[ab].jsonl", ORDER)).to("raw out", Memory()),
        Route("rate", Rate(count=25)).filter(body.value < 20).to("rate out", Memory()),
        dead_letters=Memory(),
    )
    return run_batch(app, spark)


def bodies(result: RunResult, route: str) -> list[bytes]:
    return sorted(message.raw for message in result.channels[f"{route} out"])


def test_json_lines_of_several_files_arrive_once(result: RunResult) -> None:
    assert bodies(result, "json") == [order(number) for number in (1, 2, 3, 4, 5)]


def test_bodies_that_nothing_reads_arrive_too(result: RunResult) -> None:
    assert bodies(result, "raw") == [order(number) for number in (1, 2, 3)]


def test_a_message_knows_its_file_and_its_line(result: RunResult) -> None:
    places = {message.raw: message.position for message in result.channels["json out"]}
    assert places[order(2)] == Position("a.jsonl", 0, 1)
    assert places[order(5)] == Position("c.jsonl.gz", 0, 1)
    ids = {message.id for message in result.channels["json out"]}
    assert ids == {"a.jsonl/0/0", "a.jsonl/0/1", "b.jsonl/0/0", "c.jsonl.gz/0/0", "c.jsonl.gz/0/1"}


def test_text_lines_keep_their_bytes(result: RunResult) -> None:
    assert bodies(result, "text") == ["grüße".encode(), b"zwei"]


def test_csv_records_keep_their_quotes_and_the_header_is_no_message(result: RunResult) -> None:
    assert bodies(result, "csv") == [b'1,"two\nlines"', b"2,", b'3,""']
    assert bodies(result, "bare") == [b"7;seven", b"8;eight"]
    assert bodies(result, "packed") == [b"9,nine"]


def test_xml_documents_and_elements_arrive(result: RunResult) -> None:
    assert bodies(result, "xml") == [b'<order xmlns="urn:x" id="5"><note>hi</note></order>']
    assert bodies(result, "elements") == [b'<order id="1"><note>a</note></order>', b'<order id="2"/>']


def test_messages_made_at_a_rate_are_counted_from_zero(result: RunResult) -> None:
    assert bodies(result, "rate") == sorted(b'{"value": %d}' % number for number in range(20))


def test_what_cannot_be_decoded_is_a_dead_letter_with_its_own_bytes(result: RunResult) -> None:
    dead = sorted((letter.route, letter.error, letter.reason, letter.message.raw) for letter in result.dead)
    assert dead == [
        ("csv", "WrongType", "field 'id' is \"x\", expected BIGINT", b"x,wrong"),
        ("text", "MalformedBody", "not UTF-8: byte 0xff at 0", b"\xff\x00raw"),
        ("xml", "MalformedBody", "not XML: Premature end of data in tag order line 1, line 1, column 8", b"<order>"),
    ]


def test_no_message_is_lost(result: RunResult) -> None:
    assert result.summary.conserved
    assert result.summary.filtered == {"rate.filter": 5}
    assert result.summary.received == 5 + 3 + 3 + 4 + 2 + 1 + 2 + 2 + 25


def test_a_large_file_is_read_in_chunks_and_every_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = FilePieces.chunks
    monkeypatch.setattr(FilePieces, "chunks", lambda pieces, path, **_: cut(pieces, path, chunk_bytes=50_000))
    chosen = random.Random(4)
    written = [order(number, "x" * int(chosen.expovariate(0.01))) for number in range(2_000)]
    written[700] = order(700, "long" * 30_000)
    path = write(tmp_path / "big.jsonl", b"\n".join(written))
    route = Route("r", Files(path, ORDER)).translate({"id": body.id + 1})
    app = App("chunks", route.to("x", Memory()), dead_letters=Memory())
    entry = app.plan.entries[0]
    parts = FilePieces(entry).found()
    assert len(parts) > 5
    reader = SourceReader(entry, 0, FilePieces(entry))
    blocks = [entering.block for part in parts for entering in reader.entering(part)]
    assert [raw for block in blocks for raw in block.arrived.bodies.to_pylist()] == written
    assert [number for block in blocks for number in block.column("id").to_pylist()] == list(range(2_000))
    assert len({identity for block in blocks for identity in block.ids.to_pylist()}) == len(written)


def said(source: Files) -> str:
    app = App("a", Route("r", source).to("x", Memory()), dead_letters=Memory())
    with pytest.raises(PenstockError) as caught:
        files.check(source, app.plan.entries[0], streaming=False)
    return str(caught.value)


def test_files_that_do_not_fit_are_found_before_spark_starts(tmp_path: Path) -> None:
    format = Csv("id BIGINT, note STRING")
    path = write(tmp_path / "wrong.csv", b"note,id\nx,1\n")
    assert said(Files(path, format)) == (
        f"BadSchema: the header of {path} is note, id, but the schema has id, note\n"
        "  fix  give the fields in the file's order, or header=False for a file without one"
    )
    broken = write(tmp_path / "broken.csv.gz", b"not packed")
    assert said(Files(broken, format)) == f"BadEndpoint: cannot read {broken}: Not a gzipped file (b'no')"
    assert said(Files(tmp_path / "nowhere", ORDER)) == (
        f"BadEndpoint: route 'r' reads {tmp_path}/nowhere, and there is no such file\n"
        "  fix  check the path; it is relative to where you run"
    )
    files.check(Files(path, Csv("a STRING, b STRING", header=False)), _entry(path), streaming=False)


def _entry(path: Path) -> object:
    return App("a", Route("r", Files(path, Csv("a STRING, b STRING", header=False))).to("x", Memory())).plan.entries[0]

"""Files of JSON that are lines, an array or a document: the same messages in a run, as a stream and in a trace."""

from __future__ import annotations

import gzip
import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Route, Text, body
from penstock.bench.memory import resident
from penstock.endpoints.yaml import write_endpoint
from penstock.errors import BadEndpoint
from penstock.plan.plan import Entry
from penstock.route.route import Route as Building
from penstock.spark.read.files import FilePieces
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from tests.docs.pages import penstock
from tests.spark.files import records

ORDER = Json("id BIGINT")
FILES = {
    "array.json": '[\n  {"id": 10},\n  {\n    "id": 11, "note": "],"\n  },\n  {"id": "wrong"}\n]\n',
    "document.json": '{\n  "id": 20\n}\n',
    "lines.jsonl": '{"id": 1}\n\nbroken\n{"id": 2}\n',
    "truncated.json": '[\n{"id": 30},\n{"id": 31},\n{"id": 3',
}
BODIES = {
    "array.json/0/0": '{"id": 10}',
    "array.json/0/1": '{\n    "id": 11, "note": "],"\n  }',
    "document.json/0/0": '{\n  "id": 20\n}',
    "lines.jsonl/0/0": '{"id": 1}',
    "lines.jsonl/0/2": '{"id": 2}',
    "truncated.json/0/0": '{"id": 30}',
    "truncated.json/0/1": '{"id": 31}',
}
DEAD = {"array.json/0/2": '{"id": "wrong"}', "lines.jsonl/0/1": "broken", "truncated.json/0/2": '{"id": 3'}


def app(home: Path, kind: str | None = None) -> App:
    route: Building = Route("intake", Files(home / "in", ORDER, records=kind)).filter(body.id > 0)
    return App("orders", route.to("out", Files(home / "out")), dead_letters=Memory())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name, text in FILES.items():
        (tmp_path / "in" / name).write_text(text)
    return tmp_path


def test_every_kind_of_file_gives_its_messages_with_their_own_bytes(spark: SparkSession, home: Path) -> None:
    made = app(home)
    for run in (run_batch, partial(run_stream, once=True)):
        result = run(made, spark=spark)
        assert result.summary.conserved
        assert {letter.message.id: letter.message.raw.decode() for letter in result.dead} == DEAD
        lines = sorted(line for file in (home / "out").iterdir() for line in file.read_text().splitlines())
        assert lines == sorted(text.replace("\n", " ") for text in BODIES.values())
        shutil.rmtree(home / "out")


def test_the_source_may_say_what_its_files_are(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with gzip.open(tmp_path / "in" / "one-line.json.gz", "wb") as file:
        file.write(b'[{"id": 1}, {"id": 2}]')
    result = run_batch(app(tmp_path), spark)
    assert (len(result.dead), result.summary.delivered["out"]) == (1, 0)
    where = tmp_path / "in" / "one-line.json.gz"
    said = (
        f"the only line of {where} cannot be read: it looks like an array of JSON; "
        'write Files(..., records="array"), in YAML records: array'
    )
    assert result.summary.advice == (said,)
    assert str(result.summary).endswith(said)
    result = run_batch(app(tmp_path, kind="array"), spark)
    assert (result.summary.delivered["out"], result.summary.advice) == (2, ())
    assert [record["id"] for record in records(tmp_path / "out")] == [1, 2]


def test_a_large_array_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write("[\n")
        for start in range(0, 400_000, 1000):
            file.write("".join(json.dumps({"id": n, "note": "x" * 150}) + ",\n" for n in range(start, start + 1000)))
        file.write('{"id": -1}\n]\n')
    entry: Entry
    (entry,) = App("a", Route("r", Files(path, ORDER)).to("o", Memory()), dead_letters=Memory()).plan.entries
    pieces, count, before = FilePieces(entry), 0, resident()[0]
    (chunk,) = pieces.found()
    most = before
    for block in pieces.blocks(chunk):
        assert block.offsets[0] == count
        count += len(block.bodies)
        most = max(most, resident()[0])
    assert count == 400_001
    assert path.stat().st_size > 60_000_000
    assert most - before < 40


def test_a_trace_reads_a_file_as_a_run_does(home: Path) -> None:
    (home / "app.py").write_text(
        "from penstock import App, Files, Json, Route, body\n"
        'app = App("a", Route("r", Files("in", Json("id BIGINT"))).filter(body.id > 0).to("o", Files("out")))\n'
    )
    for name, first in (("array.json", '{"id": 10}'), ("lines.jsonl", '{"id": 1}'), ("truncated.json", '{"id": 30}')):
        status, said = penstock(f"penstock trace app.py in/{name}", home)
        assert (status, said.splitlines()[-1]) == (0, f"delivered to o: {first}")
    status, said = penstock("penstock trace app.py in/document.json", home)
    assert said.endswith('delivered to o: {\n  "id": 20\n}\n')


@pytest.mark.parametrize(
    ("text", "like"),
    [
        (
            '{ "id": 1,\n  "note": 2\n}\n',
            'a JSON document over several lines; write Files(..., records="document"), in YAML records: document',
        ),
        ("<orders>\n<order/>\n</orders>\n", "XML; write Files(..., format=Xml(...))"),
    ],
)
def test_a_run_says_what_a_file_looks_like_of_which_no_line_can_be_read(
    spark: SparkSession, tmp_path: Path, text: str, like: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(text)
    (tmp_path / "in" / "b.json").write_text('{"id": 1}\nbroken\n')
    result = run_batch(app(tmp_path), spark)
    where = tmp_path / "in" / "a.json"
    assert result.summary.advice == (f"none of the first 3 lines of {where} can be read: it looks like {like}",)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadEndpoint, match="records='arrays' is not a kind of file"):
        Files("in", ORDER, records="arrays")
    with pytest.raises(BadEndpoint, match="records='array' is for files of JSON"):
        Files("in", Text(), records="array")
    assert write_endpoint(Files("in", ORDER, records="array")) == {
        "files": "in", "records": "array", "format": "json", "schema": "id BIGINT",
    }  # fmt: skip

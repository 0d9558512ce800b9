"""Apps that run in the tasks that read their files: which ones, and that they do what the reference does."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from penstock import (
    App,
    Csv,
    Files,
    Json,
    Memory,
    Parquet,
    Route,
    Xml,
    body,
)  # fmt: skip
from penstock.endpoints.base import Sink
from penstock.errors import PenstockError
from penstock.spark.read import shares
from penstock.spark.run import run_batch
from penstock.testing import run
from tests.spark.tasks.routes import CHANNELS, MESSAGES, ORDER, lines, routes

PLAIN = Json("id BIGINT, total DOUBLE, note STRING")
RECORDS = Csv("id BIGINT, note STRING")
ELEMENTS = Xml("id BIGINT, note STRING")


def start(format: Any = ORDER) -> Route:
    return Route("r", Files("in.jsonl", format))


def app(*routes: Route, **sinks: Sink) -> App:
    return App("a", *routes, sinks=sinks, dead_letters=Files("dead"))


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(drawn=routes(), messages=MESSAGES)
def test_it_does_what_the_reference_does(spark: SparkSession, drawn: list[Route], messages: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        (home / "in.jsonl").write_bytes(b"".join(message + b"\n" for message in messages))
        built = _placed(home, drawn)
        done = run_batch(built, spark)
        expected = run(built, {"first": messages})
        assert done.summary.steps == expected.summary.steps
        assert done.summary.received == len(messages)
        assert done.summary.conserved
        for channel in expected.channels:
            assert lines(home / channel) == [message.raw for message in expected.channels[channel]]
        dead = [json.loads(letter) for letter in lines(home / "dead")]
        assert [(one["id"], one["error"], one["reason"]) for one in dead] == [
            (f"in.jsonl/0/{one.message.position.offset}", one.error, one.reason) for one in expected.dead
        ]


def _placed(home: Path, drawn: list[Route]) -> App:
    moved = [replace(drawn[0], source=Files(str(home / "in.jsonl"), ORDER)), *drawn[1:]]
    used = {name for route in drawn for node in route.steps for name in node.sends_to()} & {*CHANNELS, "tapped"}
    return App("a", *moved, sinks={name: Files(str(home / name)) for name in sorted(used)},
               dead_letters=Files(str(home / "dead")))  # fmt: skip


def test_files_are_read_in_shares_and_every_line_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "SHARE_BYTES", 50)
    for number in range(7):
        orders = [json.dumps({"id": 10 * number + index}) for index in range(number)]
        (tmp_path / f"in-{number}.jsonl").write_text("".join(order + "\n" for order in orders))
    source = Files(str(tmp_path / "in-*.jsonl"), PLAIN)
    built = App("a", Route("r", source).filter(body.id != 21).to("x", Files(str(tmp_path / "x"))))
    done = run_batch(built, spark)
    assert len(list((tmp_path / "x").glob("*.jsonl"))) > 1
    found = [json.loads(line)["id"] for line in lines(tmp_path / "x")]
    assert found == [10 * number + index for number in range(7) for index in range(number) if number != 2 or index != 1]
    assert (done.summary.received, done.summary.filtered) == (21, {"r.filter": 1})


def test_a_file_that_cannot_be_read_stops_the_run_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    whole = gzip.compress(b'{"id": 1}\n' * 1000)
    (tmp_path / "in.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    built = App("a", Route("r", Files(str(tmp_path / "in.jsonl.gz"), PLAIN)).to("x", Files(str(tmp_path / "x"))))
    with pytest.raises(PenstockError, match=r"cannot read .*in\.jsonl\.gz"):
        run_batch(built, spark)
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize("dead", ["files", "parquet", "memory"])
def test_dead_letters_are_those_of_the_reference(spark: SparkSession, tmp_path: Path, dead: str) -> None:
    bodies = [b'{"id": 1}', b"broken", b'{"id": "x"}', b"\xff", b'{"id": 2}']
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(bodies))
    home = str(tmp_path / "dead")
    sink = {"files": Files(home), "parquet": Parquet(home), "memory": Memory()}[dead]
    route = Route("r", Files(str(tmp_path / "in.jsonl"), PLAIN)).filter(body.id > 0)
    built = App("a", route.to("x", Files(str(tmp_path / "x"))), dead_letters=sink)
    done, expected = run_batch(built, spark), run(built, {"r": bodies})
    found = [(one["error"], one["reason"], one["offset"]) for one in _buried(tmp_path / "dead")] or [
        (one.error, one.reason, one.message.position.offset) for one in done.dead]  # fmt: skip
    assert sorted(found) == sorted((one.error, one.reason, one.message.position.offset) for one in expected.dead)
    assert done.summary.dead == 3


def _buried(directory: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in lines(directory)] if directory.is_dir() else []
    rows += [row for file in directory.glob("*.parquet") for row in pyarrow.parquet.read_table(file).to_pylist()]
    return [{name: value for name, value in row.items() if name not in ("letter", "time")} for row in rows]


@pytest.mark.parametrize(
    ("name", "format", "content"),
    [
        ("in.csv", RECORDS, b'id,note\n1,a\n2,"b\nc"\nx,d\n3,e\n'),
        ("in.xml", ELEMENTS, b"<all><m><id>1</id></m><m><id>2</id><note>b</note></m><m><id>x</id></m></all>"),
    ],
    ids=["csv", "xml"],
)
def test_other_formats_go_the_same_way(
    spark: SparkSession, tmp_path: Path, name: str, format: Any, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    source = Files(str(tmp_path / name), format, record="m" if name == "in.xml" else None)
    route = Route("r", source).filter(body.id > 1).multicast("x", "y")
    sinks = {"x": Files(str(tmp_path / "x")), "y": Files(str(tmp_path / "y"))}
    done = run_batch(App("a", route, sinks=sinks, dead_letters=Files(str(tmp_path / "dead"))), spark)
    left, right = (file.read_bytes() for place in ("x", "y") for file in (tmp_path / place).glob("a-*"))
    assert left == right
    assert all(part in left for part in (b"2", b"b"))
    assert b"<id>1</id>" not in left
    assert len(_buried(tmp_path / "dead")) == done.summary.dead == 1
    assert done.summary.delivered["x"] == content.count(b"2") + content.count(b"3")

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

from penstock import App, Csv, Files, Json, Memory, Parquet, Route, Void, Xml, body, call, collect, join, union
from penstock.endpoints.base import Sink
from penstock.errors import PenstockError
from penstock.message import EPOCH
from penstock.spark import run as spark_run
from penstock.spark.direct.steps import is_direct
from penstock.spark.read import shares
from penstock.spark.run import run_batch
from penstock.spark.write.outlets import targets
from penstock.testing import run
from tests.spark.direct.routes import CHANNELS, MESSAGES, ORDER, lines, routes

PLAIN = Json("id BIGINT, total DOUBLE, note STRING")
RECORDS = Csv("id BIGINT, note STRING")
ELEMENTS = Xml("id BIGINT, note STRING")


def start(format: Any = ORDER) -> Route:
    return Route("r", Files("in.jsonl", format))


def app(*routes: Route, **sinks: Sink) -> App:
    return App("a", *routes, sinks=sinks, dead_letters=Files("dead"))


@pytest.mark.parametrize(
    "chosen",
    [
        app(start().to("x"), x=Files("x")),
        app(start().filter(body.total > 5).to("x"), x=Void()),
        app(start().choice({"x": body.total > 5}, otherwise="y"), Route("two", "x").filter(body.total < 9).to("z"),
            y=Files("y"), z=Files("z")),
        app(start().translate({"n": body.id}).multicast("x", "y"), x=Files("x"), y=Void()),
        app(start().tap("seen").balance("x", "y"), seen=Files("seen"), x=Files("x"), y=Files("y")),
        app(start().split(body.lines).to("x"), x=Files("x")),
        app(start(PLAIN).split_fields(head=["id"]).balance("x", "y"), x=Files("x"), y=Files("y")),
        app(start().balance("p", "q"), Route("all", join("p", "q")).to("x"), x=Files("x")),
        app(start(RECORDS).filter(body.id > 1).to("x"), x=Files("x")),
        app(start(ELEMENTS).filter(body.id > 1).to("x"), x=Files("x")),
        app(start(PLAIN).filter(body.total > 5).aggregate(collect("all"), by=body.id, size=2).to("x"), x=Void()),
        app(start(PLAIN).aggregate(collect("all"), by=body.note, timeout="1 minute").multicast("x", "y"),
            x=Files("x"), y=Files("y")),
    ],
)  # fmt: skip
def test_apps_that_only_move_copy_and_pick(chosen: App) -> None:
    assert is_direct(chosen.plan, targets(chosen.plan))


@pytest.mark.parametrize(
    "chosen",
    [
        app(start().to("x"), x=Memory()),
        app(start().to("x"), x=Parquet("x")),
        app(start(PLAIN).to("x"), x=Files("x", Csv(PLAIN.schema.ddl()))),
        app(start().translate({"n": body.id + 1}).to("x"), x=Files("x")),
        app(start().filter(call("upper", body.note) == "A").to("x"), x=Files("x")),
        app(start().filter(body.total > 5, missing="dead").to("x"), x=Files("x")),
        app(start().translate({"n": body.id}).filter(body.n > 1).to("x"), x=Files("x")),
        app(start().recipients(body.note, ["x"]), x=Files("x")),
        app(start().balance("x", "y", random_seed=4), x=Files("x"), y=Files("y")),
        app(start().aggregate(collect("all"), by=body.id, size=2).to("x"), x=Files("x")),
        app(start(PLAIN).aggregate(collect("all"), by=body.id, size=2).to("x"), x=Memory()),
        app(start(PLAIN).aggregate(union(), by=body.id, size=2).to("x"), x=Files("x")),
        app(start(PLAIN).aggregate(collect("all", of="id"), by=body.id, size=2).to("x"), x=Files("x")),
        app(start(PLAIN).aggregate(collect("all"), by=body.id, new_group=True).to("x"), x=Files("x")),
        app(start(PLAIN).aggregate(collect("all"), by=body.id, size=2, when=body.total > 5).to("x"), x=Files("x")),
        app(start(PLAIN).aggregate(collect("all"), by=body.id, size=2, on_stop="discard").to("x"), x=Files("x")),
        app(start(PLAIN).aggregate(collect("all"), by=body.id, size=2).balance("x", "y"), x=Files("x"), y=Files("y")),
        app(start(PLAIN).multicast("p", "q"), Route("s", "p").aggregate(collect("all"), by=body.id, size=2).to("x"),
            x=Files("x"), q=Files("q")),
        app(start(PLAIN).aggregate(collect("all"), by=call("upper", body.note), size=2).to("x"), x=Files("x")),
        App("a", Route("r", Memory(format=ORDER)).to("x", Files("x"))),
    ],
)
def test_others_go_through_spark(chosen: App) -> None:
    assert not is_direct(chosen.plan, targets(chosen.plan))


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(drawn=routes(), messages=MESSAGES)
def test_it_does_what_the_reference_does(spark: SparkSession, drawn: list[Route], messages: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        (home / "in.jsonl").write_bytes(b"".join(message + b"\n" for message in messages))
        built = _placed(home, drawn)
        assert is_direct(built.plan, targets(built.plan))
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
def test_dead_letters_are_those_that_spark_would_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"id": 1}\nbroken\n{"id": "x"}\n\xff\n{"id": 2}\n')
    seen = []
    for number, chosen in enumerate((is_direct, lambda *_: False)):
        monkeypatch.setattr(spark_run, "is_direct", chosen)
        home = tmp_path / str(number)
        sink = {"files": Files(str(home / "dead")), "parquet": Parquet(str(home / "dead")), "memory": Memory()}[dead]
        route = Route("r", Files(str(tmp_path / "in.jsonl"), PLAIN)).filter(body.id > 0)
        done = run_batch(App("a", route.to("x", Files(str(home / "x"))), dead_letters=sink), spark)
        kept = [(one.error, one.reason, replace(one.message, time=EPOCH)) for one in done.dead]
        seen.append(_buried(home / "dead") or kept)
        assert done.summary.dead == 3
    assert seen[0] == seen[1]


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
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, format: Any, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    source = Files(str(tmp_path / name), format, record="m" if name == "in.xml" else None)
    seen = []
    for number, chosen in enumerate((is_direct, lambda *_: False)):
        monkeypatch.setattr(spark_run, "is_direct", chosen)
        home = tmp_path / str(number)
        route = Route("r", source).filter(body.id > 1).multicast("x", "y")
        sinks = {"x": Files(str(home / "x")), "y": Files(str(home / "y"))}
        built = App("a", route, sinks=sinks, dead_letters=Files(str(home / "dead")))
        assert is_direct(built.plan, targets(built.plan))
        done = run_batch(built, spark)
        written = sorted(file.read_bytes() for place in ("x", "y") for file in (home / place).glob("a-*"))
        seen.append((written, _buried(home / "dead"), done.summary.steps))
        assert done.summary.dead == 1
    assert seen[0] == seen[1]

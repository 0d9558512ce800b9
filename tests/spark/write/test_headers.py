"""Headers that a step has set arrive in what tasks stage for every sink that has room for them. No Java runs here."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from penstock import App, Json, KafkaTopic, Log, Memory, Parquet, Postgres, Route, body, header
from penstock.endpoints.base import Sink
from penstock.endpoints.memory import as_messages
from penstock.kernel.block import arrived_of
from penstock.kernel.flow import Flow
from penstock.kernel.reading import Decoder
from penstock.log.headers import read_headers
from penstock.message import Message
from penstock.spark.tasks.leaving import Outgoing, buried, delivered
from penstock.spark.write.frames import staged_frames
from penstock.spark.write.outlets import places_of, targets
from penstock.spark.write.publish import Kept, _read_back
from penstock.spark.write.staging import Staging
from penstock.spark.write.staging_files import TaskWriter

GIVEN = Message("m", b'{"id": 7}', headers={"old": "1", "secret": "x"})
EXPECTED = {"old": "1", "id": "7", "note": "text"}


def staged(directory: Path, sink: Sink, dead: Sink | None = None) -> dict[str, str]:
    """The file that a task leaves for the sink, and that for dead letters."""
    route = Route("in", Memory((), Json("id BIGINT"))).headers({"id": body.id, "note": "text"}, remove=["secret"])
    route = route.filter(header.id == "7").tap("out").filter(body.id > body.id / 0, missing="dead").to("never")
    plan = App("sinks", route, sinks={"out": sink, "never": Memory()}, dead_letters=dead or Memory()).plan
    found = targets(plan)
    (entry,) = plan.entries
    block, _ = Decoder(entry)(arrived_of(as_messages([GIVEN]), "in"))
    ends, now = Flow(plan).run("in", block), datetime(2026, 1, 1, tzinfo=UTC)
    place = places_of(plan)["out"]
    written = frozenset({entry.scope.number}) if sink.columns else frozenset()
    writing = TaskWriter(found, Staging("key", str(directory), str(directory))).begin()
    for batch in [*delivered(ends, {"out": Outgoing(place, written, found[place].wants_meta)}, now),
                  *buried(ends.dead, now)]:  # fmt: skip
        writing.write(batch)
    lines = {line["place"]: line["path"] for line in writing.close()}
    return {"out": lines[place], "dead": lines[-1]}


@pytest.mark.parametrize("sink", [Log("t", at="data", headers=True), KafkaTopic("t", headers=True)], ids=str)
def test_topics_keep_them(sink: Sink, tmp_path: Path) -> None:
    (frame,) = staged_frames(staged(tmp_path, sink)["out"])
    assert [read_headers(raw) for raw in frame.headers.to_pylist()] == [EXPECTED]


@pytest.mark.parametrize("sink", [Log("t", at="data"), KafkaTopic("t")], ids=str)
def test_topics_that_keep_none_leave_them_behind(sink: Sink, tmp_path: Path) -> None:
    (frame,) = staged_frames(staged(tmp_path, sink)["out"])
    assert not any(map(read_headers, frame.headers.to_pylist()))


def test_parquet_has_them_in_a_column(tmp_path: Path) -> None:
    rows = pyarrow.parquet.read_table(staged(tmp_path, Parquet(str(tmp_path / "out")))["out"]).to_pylist()
    assert [(row["id"], dict(row["_headers"])) for row in rows] == [(7, EXPECTED)]


def test_postgres_gets_them_as_json(tmp_path: Path) -> None:
    path = staged(tmp_path, Postgres("postgresql://nobody@nowhere/nothing", "orders"))["out"]
    rows = pyarrow.parquet.read_table(path).to_pylist()
    assert [json.loads(row["_headers"]) for row in rows] == [EXPECTED]


def test_lists_and_dead_letters_have_them(tmp_path: Path) -> None:
    paths, kept = staged(tmp_path, Memory()), Kept()
    plan = App("x", Route("in", Memory((), Json("id BIGINT"))).to("out", Memory()), dead_letters=Memory()).plan
    found: dict[Any, Any] = {"dead" if target.dead else "out": target for target in targets(plan).values()}
    for name, path in paths.items():
        _read_back(path, found[name], kept)
    assert [dict(message.headers) for message in kept.messages["out"]] == [EXPECTED]
    assert [dict(letter.message.headers) for letter in kept.dead] == [EXPECTED]


def test_dead_letters_in_files_have_them(tmp_path: Path) -> None:
    from penstock import Files

    path = staged(tmp_path, Memory(), Files(os.fspath(tmp_path / "dead")))["dead"]
    assert [json.loads(line)["headers"] for line in Path(path).read_text().splitlines()] == [EXPECTED]

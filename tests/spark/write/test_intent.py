"""A batch is published from its intent: whenever the process dies, every sink has every message once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Parquet, Postgres, Route, Table, body, function
from penstock.errors import BadEndpoint, PenstockError
from penstock.spark import execute
from penstock.spark.run import RunResult, run_batch, summarized
from penstock.spark.stream import run_stream
from penstock.spark.write import intent, publish
from penstock.spark.write import postgres as postgres_sink
from penstock.spark.write.intent import KEPT_INTENTS, Counts, Intent, Journal, StagedFile
from penstock.spark.write.outlets import targets
from penstock.spark.write.staging import Staging
from penstock.summary import Step
from tests.database import Database
from tests.spark.files import contents, records

ORDER = Json("id BIGINT, note STRING")


def mark(number: int) -> str:
    """Another answer every time: sinks that were computed twice would differ."""
    return f"{number}-{uuid.uuid4().hex}"


def every_sink(home: Path, url: str) -> App:
    """Files in; lines, columns, a table, rows on a server, memory and dead letters out."""
    marked = function(mark, body.id, returns="STRING")
    route = Route("intake", Files(home / "in", ORDER)).filter(body.id != 0).enrich({"note": marked})
    return App(
        "orders",
        route.multicast("x", "y", "z", "rows", "kept"),
        sinks={"x": Files(home / "lines"), "y": Parquet(home / "columns"),
               "z": Table("orders", warehouse=str(home / "warehouse")),
               "rows": Postgres(url, "orders"), "kept": Memory()},
        dead_letters=Files(home / "dead"),
    )  # fmt: skip


def write(path: Path, *ids: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": number}) + "\n" for number in ids))


def run(home: Path, postgres: Database, spark: SparkSession) -> RunResult:
    return run_stream(every_sink(home, postgres.url), str(home / "checkpoint"), once=True, spark=spark)


def held(home: Path, postgres: Database) -> dict[str, list[Any]]:
    """What every sink has: (id, note), and the bodies of dead letters."""
    found = {"lines": [(record["id"], record["note"]) for record in records(home / "lines")]}
    for name, place in (("columns", home / "columns"), ("table", home / "warehouse" / "orders")):
        rows = parquet.read_table(place).to_pylist() if place.exists() else []
        found[name] = [(row["id"], row["note"]) for row in rows]
    found["rows"] = [(row["id"], row["note"]) for row in postgres.rows("orders")]
    return found | {"dead": [json.loads(letter["body"])["id"] for letter in records(home / "dead")]}


def written(home: Path) -> dict[str, bytes]:
    return {name: raw for name, raw in contents(home).items() if not name.startswith(("in/", "checkpoint/"))}


class Crash(RuntimeError):
    pass


def before(times: int = 1) -> Callable[[Any], Any]:
    """A function that fails instead of doing its work the nth time."""

    def wrap(real: Any) -> Any:
        calls = iter(range(1, times + 1))

        def failing(*arguments: Any, **options: Any) -> Any:
            if next(calls, times) == times:
                raise Crash("here it ends")
            return real(*arguments, **options)

        return failing

    return wrap


def after(real: Any) -> Any:
    def failing(*arguments: Any, **options: Any) -> Any:
        real(*arguments, **options)
        raise Crash("here it ends")

    return failing


def half(real: Any) -> Any:
    def failing(path: str, content: bytes) -> None:
        directory, name = os.path.split(path)
        Path(directory, f".{name}.1").write_bytes(content[:10])
        raise Crash("here it ends")

    return failing


# The steps of a batch in their order: whose they are, how they end, and whether the intent was there by then.
MOMENTS: dict[str, tuple[Any, str, Callable[[Any], Any], bool]] = {
    "files staged": (Staging, "seal", before(), False),
    "names sealed": (Journal, "write", before(), False),
    "intent half written": (intent, "write_whole", half, False),
    "intent written": (Journal, "write", after, True),
    "rows not committed": (postgres_sink, "_insert", after, True),
    "rows loaded": (publish, "load", after, True),
    "one file published": (publish, "_rename", before(2), True),
    "one sink published": (publish, "_rename", before(3), True),
    "all but the dead letters published": (publish, "_rename", before(7), True),
    "staging not cleared": (Staging, "clear", before(7), True),
    "all published": (execute, "publish", after, True),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_sink_has_every_message_once_whenever_it_stopped(
    moment: str, spark: SparkSession, postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, failing, computed = MOMENTS[moment]
    write(tmp_path / "in" / "a.jsonl", 1, 2, 0, "x")
    write(tmp_path / "in" / "b.jsonl", 3)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing(getattr(owner, name)))
        with pytest.raises(PenstockError, match="here it ends"):
            run(tmp_path, postgres, spark)
    stopped = held(tmp_path, postgres)
    result = run(tmp_path, postgres, spark)
    sinks = held(tmp_path, postgres)
    assert [number for number, _ in sinks["lines"]] == [1, 2, 3]
    assert sinks["lines"] == sinks["columns"] == sinks["table"] == sinks["rows"]
    assert sinks["dead"] == ["x"]
    assert all(sinks[name][: len(found)] == found for name, found in stopped.items())
    assert (result.summary.received, result.summary.delivered["x"]) == (5, 3)
    assert result.summary.conserved
    # What memory sinks kept does not outlive the process; only a batch that is computed again fills them.
    assert len(result.channels["kept"]) == (0 if computed else 3)
    assert not list(tmp_path.rglob("_staging"))


@pytest.mark.long
def test_killed_processes_leave_every_message_once(tmp_path: Path, postgres: Database) -> None:
    write(tmp_path / "in" / "a.jsonl", 1, 2, 0, "x")
    for killed in ("names sealed", "rows not committed", "one sink published", ""):
        command = [
            sys.executable,
            "-c",
            "from tests.spark.write.test_intent import die; die()",
            str(tmp_path),
            postgres.url,
        ]
        done = subprocess.run(
            [*command, killed], cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == (-signal.SIGKILL if killed else 0), done.stderr
    sinks = held(tmp_path, postgres)
    assert [number for number, _ in sinks["lines"]] == [1, 2]
    assert sinks["lines"] == sinks["columns"] == sinks["table"] == sinks["rows"]
    assert sinks["dead"] == ["x"]
    assert not list(tmp_path.rglob("_staging"))


def die() -> None:
    """What the process above runs: the app, killed without a chance to clean up at the moment it is told."""
    home, url, moment = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    if moment:
        owner, name, failing, _ = MOMENTS[moment]
        ending = failing(getattr(owner, name))

        def killed(*arguments: Any, **options: Any) -> Any:
            try:
                return ending(*arguments, **options)
            except Crash:
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, killed)
    run_stream(every_sink(home, url), str(home / "checkpoint"), once=True)


def test_removing_the_last_entry_of_the_commit_log_changes_nothing(
    spark: SparkSession, postgres: Database, tmp_path: Path
) -> None:
    write(tmp_path / "in" / "a.jsonl", 1, "x")
    run(tmp_path, postgres, spark)
    write(tmp_path / "in" / "b.jsonl", 2)
    run(tmp_path, postgres, spark)
    sinks, rows = written(tmp_path), postgres.rows("orders")
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    result = run(tmp_path, postgres, spark)
    assert (result.summary.batches, result.summary.received, result.summary.delivered["x"]) == (1, 1, 1)
    assert (written(tmp_path), postgres.rows("orders")) == (sinks, rows)
    write(tmp_path / "in" / "c.jsonl", 3)
    run(tmp_path, postgres, spark)
    assert [number for number, _ in held(tmp_path, postgres)["lines"]] == [1, 2, 3]


def test_a_batch_whose_messages_changed_is_not_published(
    spark: SparkSession, postgres: Database, tmp_path: Path
) -> None:
    write(tmp_path / "in" / "a.jsonl", 1)
    run(tmp_path, postgres, spark)
    for entry in ("commits/0", "offsets/0"):
        (tmp_path / "checkpoint" / entry).unlink()
    write(tmp_path / "in" / "b.jsonl", 2)
    with pytest.raises(PenstockError, match="batch 0 was computed before, from other messages than its checkpoint"):
        run(tmp_path, postgres, spark)


def test_an_intent_of_another_stream_is_not_used(spark: SparkSession, postgres: Database, tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.jsonl", 1)
    run(tmp_path, postgres, spark)
    for path in sorted((tmp_path / "checkpoint").rglob("*"), reverse=True):
        if "penstock-batches" not in str(path):
            path.unlink() if path.is_file() else path.rmdir()
    assert len(run(tmp_path, postgres, spark).channels["kept"]) == 1
    assert [number for number, _ in held(tmp_path, postgres)["lines"]] == [1, 1]


def test_a_journal_keeps_the_last_intents(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    for number in range(KEPT_INTENTS + 5):
        journal.write(number, Intent(f"a-query-{number:09d}", Counts({}, {}, 0, 0), notes=(f"{number}",)))
    assert len(list((tmp_path / "penstock-batches").iterdir())) == KEPT_INTENTS
    assert journal.find(4, "query") is None
    found = journal.find(14, "query")
    assert found is not None
    assert found.notes == ("14",)
    assert journal.find(14, "other") is None
    (tmp_path / "penstock-batches" / "000000014.json").write_text("{")
    with pytest.raises(PenstockError) as caught:
        journal.find(14, "query")
    assert str(caught.value).startswith(f"BadEndpoint: cannot read {tmp_path}/penstock-batches/000000014.json: ")
    assert str(caught.value).endswith("\n  fix  restore the checkpoint, or start with a new one")


@pytest.mark.parametrize("content", [b"{}", b'{"key":"\xff"}', b"[" * 100_000])
def test_an_intent_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "penstock-batches").mkdir()
    (tmp_path / "penstock-batches" / "000000003.json").write_bytes(content)
    with pytest.raises(BadEndpoint, match=r"cannot read .*000000003\.json"):
        Journal(str(tmp_path)).find(3, "query")


def test_an_intent_is_the_same_after_reading(tmp_path: Path) -> None:
    file = StagedFile("x", "/a/_staging/b", "/a/b", 3, 1)
    known = Intent("a-query-000000000", Counts({"x": 3}, {"r.filter": 1}, 2, 1, 4), (file,), ('{"a": 1}',))
    journal = Journal(str(tmp_path))
    journal.write(0, known)
    assert journal.find(0, "query") == known
    assert msgspec.structs.asdict(known.counts)["held"] == 4
    assert known.counts.received == 9


def test_an_intent_of_an_earlier_version_knows_no_latency_of_steps(tmp_path: Path) -> None:
    counts = (
        '{"delivered":{"x":2},"filtered":{},"dead":0,"copied":0,"held":0,"times":{"x":[10.0,5.0]},"steps":{"r.to":'
        '{"received":2,"sent":2,"filtered":0,"dead":0,"held":0,"copied":0}}}'
    )
    journal = Journal(str(tmp_path))
    journal.write(0, Intent("a-query-000000000", Counts({}, {}, 0, 0)))
    (path,) = (tmp_path / "penstock-batches").iterdir()
    path.write_text(f'{{"key":"a-query-000000000","counts":{counts},"files":[],"notes":[],"offsets":""}}')
    found = journal.find(0, "query")
    assert found is not None
    summary = summarized(every_sink(tmp_path, "postgresql://nowhere").plan, found.counts, 2, 1.0)
    assert (summary.steps, summary.step_latency) == ({"r.to": Step(2, 2)}, {})
    assert summary.latency["x"].messages == 2


def test_what_cannot_be_published_is_named(postgres: Database, tmp_path: Path) -> None:
    app = every_sink(tmp_path, postgres.url)
    staging, counts = Staging("key", str(tmp_path), str(tmp_path)), Counts({}, {}, 0, 0)
    staged, final = f"{tmp_path}/lines/_staging/key.1/a", f"{tmp_path}/lines/key-00000.jsonl"
    lost = StagedFile("x", staged, final, 1, 0)
    with pytest.raises(PenstockError) as caught:
        publish.publish(Intent("key", counts, (lost,)), targets(app.plan), staging)
    assert str(caught.value) == (
        f"BadEndpoint: a batch was computed, but neither {staged} nor {final} is there\n"
        "  fix  restore one of them, or start with a new checkpoint"
    )
    gone = StagedFile("gone", f"{tmp_path}/staged", None, 1, 0)
    with pytest.raises(PenstockError) as caught:
        publish.publish(Intent("key", counts, (gone,)), targets(app.plan), staging)
    assert str(caught.value) == (
        "BadEndpoint: batch key was computed for channel 'gone', which has no sink now\n"
        "  fix  start the app as it was once more, then change it"
    )


@pytest.mark.parametrize(
    ("channel", "path", "final"),
    [
        ("x", "victim", "lines/key-00000.jsonl"),
        ("x", "lines/_staging/key.1/a", "elsewhere"),
        ("x", "lines/_staging/key.1/a", "lines/_staging/../../elsewhere/key-00000.jsonl"),
        ("x", "lines/_staging/key.1/a", "lines/link/../key-00000.jsonl"),
        ("x", "lines/_staging/key.1/../../../victim", "lines/key-00000.jsonl"),
        ("x", "lines/_staging/key.1/a", "lines/other-00000.jsonl"),
        ("x", "lines/_staging/key.1/a", None),
        ("rows", "victim", None),
        ("rows", "lasting/key.1/a", "elsewhere"),
    ],
)
def test_an_intent_moves_nothing_but_staged_files_into_their_own_sink(
    channel: str, path: str, final: str | None, tmp_path: Path
) -> None:
    for name in ("victim", "lines/_staging/key.1/a", "lasting/key.1/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "lines" / "link").symlink_to(tmp_path / "elsewhere" / "deep")
    before, found = contents(tmp_path), targets(every_sink(tmp_path, "postgresql://nowhere/x").plan)
    staging = Staging("key", str(tmp_path / "scratch"), str(tmp_path / "lasting"))
    file = StagedFile(channel, f"{tmp_path}/{path}", None if final is None else f"{tmp_path}/{final}", 1, 0)
    with pytest.raises(PenstockError, match=f"batch key says that .* is for channel '{channel}'") as caught:
        publish.publish(Intent("key", Counts({}, {}, 0, 0), (file,)), found, staging, again=True)
    assert "its checkpoint was changed: restore it" in str(caught.value)
    assert contents(tmp_path) == before


def test_an_intent_does_not_follow_a_link_out_of_the_staging_directory(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "lines/_staging/key.1").mkdir(parents=True)
    (tmp_path / "lines/_staging/key.1/a").symlink_to(tmp_path / "victim")
    found = targets(every_sink(tmp_path, "postgresql://nowhere/x").plan)
    file = StagedFile("x", f"{tmp_path}/lines/_staging/key.1/a", f"{tmp_path}/lines/key-00000.jsonl", 1, 0)
    with pytest.raises(PenstockError, match="batch key says that"):
        publish.publish(Intent("key", Counts({}, {}, 0, 0), (file,)), found, Staging("key", "", ""), again=True)


def test_a_batch_run_that_cannot_publish_says_so(
    spark: SparkSession, postgres: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in" / "a.jsonl", 1)
    monkeypatch.setattr(publish, "_rename", before()(publish._rename))
    with pytest.raises(Crash):
        run_batch(every_sink(tmp_path, postgres.url), spark)
    assert not list(tmp_path.rglob("_staging"))

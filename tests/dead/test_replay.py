"""Dead letters are listed, shown and replayed, whatever table they are in; a crash neither loses nor doubles them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import App, Console, Files, Json, Memory, Parquet, Postgres, Route, Table, body, function
from penstock.dead.choose import chooser
from penstock.dead.letter import Letter
from penstock.dead.replay import finish, key_of, replay
from penstock.dead.store import Directory, Store, letters, locked, store_of
from penstock.endpoints.base import Sink
from penstock.errors import PenstockError
from penstock.message import DeadLetter, Message, Position
from penstock.spark import all_or_nothing
from penstock.spark import replay as on_spark
from penstock.spark.run import run_batch
from penstock.summary import Step
from tests.database import Database
from tests.spark.files import contents, records

ORDER = Json("id BIGINT, total DOUBLE")


def shop(home: Path, dead: Sink | None = None, *given: object, url: str = "") -> App:
    """Orders get a price, which fails until it is mended, and go to files, columns, and a server if there is one."""

    def price(total: float) -> float:
        if total < 0 and not os.path.exists(home / "mended"):
            raise ValueError("no price")
        return abs(total)

    cost = function(price, body.total, returns="DOUBLE")
    route = Route("intake", Memory(given, ORDER)).filter(body.id > 0).enrich({"price": cost}, name="price")
    sinks: dict[str, Sink] = {"lines": Files(home / "lines"), "columns": Parquet(home / "columns", mode="overwrite")}
    if url:
        sinks["rows"] = Postgres(url, "orders")
    return App("shop", route.multicast(*sinks), sinks=sinks, dead_letters=dead or Files(home / "dead"))


GIVEN = ({"id": 1, "total": 1.0}, {"id": 2, "total": -2.0}, {"id": 3, "total": -3.0}, b"broken")


def mend(home: Path) -> None:
    (home / "mended").touch()


def stored(app: App) -> list[Letter]:
    return list(letters(store_of(app)))


def prices(home: Path) -> list[float]:
    return sorted(record["price"] for record in records(home / "lines"))


@pytest.mark.parametrize("kind", ["files", "parquet", "table", "postgres"])
def test_letters_of_every_table_are_found_and_replayed_once(
    spark: SparkSession, tmp_path: Path, postgres: Database, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sinks: dict[str, Sink] = {
        "files": Files(tmp_path / "dead"), "parquet": Parquet(tmp_path / "dead"),
        "table": Table("dead", warehouse=str(tmp_path)), "postgres": Postgres(postgres.url, "dead_letters"),
    }  # fmt: skip
    app = shop(tmp_path, sinks[kind], *GIVEN, url=postgres.url)
    run_batch(app, spark)
    first = stored(app)
    assert [(one.dead.step, one.dead.error, one.dead.attempt, one.replays) for one in first] == [
        ("price", "FunctionFailed", 1, 0), ("price", "FunctionFailed", 1, 0), ("decode", "MalformedBody", 1, 0),
    ]  # fmt: skip
    raw = [one.dead.message.raw for one in first]
    assert raw == [b'{"id": 2, "total": -2.0}', b'{"id": 3, "total": -3.0}', b"broken"]
    mend(tmp_path)
    store = store_of(app)
    chosen = list(filter(chooser("step = 'price' AND contains(text, '-2.0')"), letters(store)))
    result = replay(app, store, chosen, "step", spark=spark)
    assert (result.summary.received, result.summary.delivered["lines"], result.summary.conserved) == (1, 1, True)
    assert (result.summary.steps["intake.filter"], result.summary.steps["intake.price"]) == (Step(), Step(1, 1))
    assert prices(tmp_path) == [1.0, 2.0]
    assert len(postgres.rows("orders")) == 2
    assert [one.replays for one in stored(app)] == [1, 0, 0]
    replay(app, store, stored(app)[1:], "step", spark=spark)
    assert prices(tmp_path) == [1.0, 2.0, 3.0]
    again = stored(app)
    assert [(one.dead.step, one.dead.attempt, one.replays) for one in again] == [
        ("price", 1, 1), ("price", 1, 1), ("decode", 1, 1), ("decode", 2, 0),
    ]  # fmt: skip
    assert [one.name for one in again[:3]] == [one.name for one in first]


def test_a_replay_adds_to_sinks_that_a_run_would_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    app = shop(tmp_path, None, *GIVEN)
    run_batch(app, spark)
    mend(tmp_path)
    replay(app, store_of(app), stored(app), "start", spark=spark)
    assert sorted(parquet.read_table(tmp_path / "columns").column("price").to_pylist()) == [1.0, 2.0, 3.0]


class Crash(BaseException):
    pass


def crash(*_: Any, **__: Any) -> None:
    raise Crash


def held(home: Path, postgres: Database) -> tuple[Any, ...]:
    visible = {name: raw for name, raw in contents(home).items() if "/_" not in name and not name.startswith("cache")}
    return visible, len(postgres.rows("orders"))


# What a replay does, in its order, and whether the letters are taken by then.
MOMENTS = {
    "computing": (all_or_nothing, "_joined", False),
    "sealing": (all_or_nothing.Whole, "seal", False),
    "recording": (Directory, "write", False),
    "publishing": (all_or_nothing, "publish", True),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_replay_that_dies_changes_nothing_or_is_finished(
    spark: SparkSession, tmp_path: Path, postgres: Database, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    app = shop(tmp_path, None, *GIVEN, url=postgres.url)
    run_batch(app, spark)
    mend(tmp_path)
    where, name, taken = MOMENTS[moment]
    before = held(tmp_path, postgres)
    # A process that is killed cleans nothing up.
    monkeypatch.setattr(on_spark, "forget", lambda *_: None, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(all_or_nothing, "forget", lambda *_: None)
        patch.setattr(where, name, crash)
        with pytest.raises(Crash):
            replay(app, store_of(app), stored(app)[:2], "step", spark=spark)
    assert held(tmp_path, postgres) == before
    assert [one.replays for one in stored(app)] == [taken, taken, False]
    store = store_of(app)
    assert [len(one.letters) for one in finish(app, store)] == ([2] if taken else [])
    left = [one for one in stored(app) if not one.replays][: 1 if taken else 2]
    if not taken:
        replay(app, store, left, "step", spark=spark)
    assert prices(tmp_path) == [1.0, 2.0, 3.0]
    assert len(postgres.rows("orders")) == 3
    assert [one.replays for one in stored(app)] == [1, 1, 0]
    assert finish(app, store) == []
    assert not [name for name in contents(tmp_path) if "_staging" in name or ".arrow" in name]


def test_the_same_letters_make_the_same_key_until_they_were_replayed(tmp_path: Path) -> None:
    def letter(name: str, replays: int = 0) -> Letter:
        return Letter(name, DeadLetter(Message("m", b""), "r", "s", "E", "why"), replays)

    app = shop(tmp_path)
    assert key_of(app, [letter("a"), letter("b")]) == key_of(app, [letter("b"), letter("a")])
    assert key_of(app, [letter("a")]) != key_of(app, [letter("a", 1)])
    assert key_of(app, [letter("a")]).startswith("shop-replay-")


def test_one_replay_at_a_time(tmp_path: Path) -> None:
    store: Store = Directory(str(tmp_path))
    with locked(store), pytest.raises(PenstockError) as caught, locked(store):
        pass
    assert str(caught.value).startswith("BadEndpoint: these dead letters are being replayed now\n")
    with locked(store):
        pass


def said(action: Any) -> str:
    with pytest.raises(PenstockError) as caught:
        action()
    return str(caught.value)


def test_only_tables_have_letters(tmp_path: Path) -> None:
    assert stored(shop(tmp_path)) == []
    for sink in (Memory(), Console()):
        text = said(lambda sink=sink: store_of(shop(tmp_path, sink)))
        assert text.startswith(f"BadEndpoint: the dead letters of app 'shop' go to {sink}, where they cannot be found")
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead" / "other.jsonl").write_text("not a letter\n")
    assert "line 1 of " in said(lambda: stored(shop(tmp_path)))


def test_conditions_are_over_the_record_of_a_letter() -> None:
    message = Message("m/0/7", b'{"id": 7}', headers={"region": "EU"}, position=Position("m", 0, 7))
    letter = Letter("abc", DeadLetter(message, "intake", "price", "ScriptFailed", "no", 2))
    for true in (
        "error = 'ScriptFailed' AND step = 'price'", "attempt >= 2 AND offset = 7", "header.region = 'EU'",
        "time < '2026'", "replays = 0", "contains(text, 'id')", "meta('id') = 'm/0/7'", "parent IS NULL",
    ):  # fmt: skip
        assert chooser(true)(letter), true
    assert not chooser("parent = 'x'")(letter)
    assert chooser(None)(letter)
    assert said(lambda: chooser("stap = 'price'")).splitlines()[0] == "UnknownField: a dead letter has no field 'stap'"
    assert said(lambda: chooser("attempt")).startswith("TypeMismatch: a condition is true or false, but attempt is ")
    assert said(lambda: chooser("attempt = 'x'")).startswith("TypeMismatch: BIGINT == STRING cannot be compared")
    assert said(lambda: chooser("error =")).startswith("BadExpression: ")
    assert "cannot follow paths" in said(lambda: chooser("xpath('/a')"))


KILLED = """\
import os, signal, sys
from penstock.spark import all_or_nothing
from penstock.dead import store

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(*{"before": (store.Directory, "write"), "after": (all_or_nothing, "publish")}[sys.argv.pop(1)], die)
from penstock.cli.main import main
main()
"""
APP = """\
import os
from penstock import App, Files, Json, Route, body, function

def price(total: float) -> float:
    if not os.path.exists("mended"):
        raise ValueError("no price")
    return total * 2

cost = function(price, body.total, returns="DOUBLE")
app = App(
    "orders",
    Route("intake", Files("orders.jsonl", format=Json("id BIGINT, total DOUBLE"))).enrich({"price": cost}).to("out"),
    sinks={"out": Files("out")},
)
"""


@pytest.mark.long
def test_kill_at_the_worst_moments(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.route.load import load

    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "orders.jsonl").write_text("".join(json.dumps({"id": n, "total": n}) + "\n" for n in range(3)))
    app = load("app.py")
    run_batch(app, spark)
    (tmp_path / "mended").touch()

    def killed(moment: str) -> int:
        environment = {**os.environ, "PENSTOCK_QUICK": "1"}
        return subprocess.run(
            [sys.executable, "-c", KILLED, moment, "dead", "replay", "app.py"], env=environment, timeout=300,
            capture_output=True,
        ).returncode  # fmt: skip

    assert killed("before") == -9
    assert not (tmp_path / "out").exists() or records(tmp_path / "out") == []
    assert [one.replays for one in stored(app)] == [0, 0, 0]
    assert killed("after") == -9
    assert [one.replays for one in stored(app)] == [1, 1, 1]
    assert records(tmp_path / "out") == []
    assert len(finish(app, store_of(app))) == 1
    assert sorted(record["price"] for record in records(tmp_path / "out")) == [0.0, 2.0, 4.0]
    assert not [name for name in contents(tmp_path) if "_staging" in name]

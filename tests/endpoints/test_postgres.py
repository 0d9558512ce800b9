"""Messages as rows of a PostgreSQL table: on a real server, once, and without a password in sight."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Message, Postgres, Route, Void, body, default
from penstock.errors import PenstockError
from penstock.route.yaml import from_yaml, to_yaml
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from penstock.spark.write import postgres as driver
from penstock.spark.write.flat import storable
from penstock.spark.write.intent import KEPT_INTENTS, StagedFile
from penstock.spark.write.outlets import Target, targets
from penstock.spark.write.postgres import load, prepare
from penstock.spark.write.staging import Staging
from penstock.spark.write.staging_files import TaskWriter
from tests.database import Database

ORDER = Json(
    "id BIGINT, note STRING, price DOUBLE, paid BOOLEAN, tags ARRAY<STRING>, `to` STRUCT<city: STRING>, x VARIANT"
)
URL = "postgresql://ann:hunter2@db.example.org:5432/shop"


def target(sink: Postgres, schema: str = "id BIGINT, note STRING") -> Target:
    """What Spark writes to the sink, without Spark."""
    app = App("orders", Route("r", Memory((), Json(schema))).to("x", sink), dead_letters=Void())
    (found,) = targets(app.plan).values()
    return found


def staged(found: Target, home: Path, *bodies: dict[str, Any], partition: int = 0) -> StagedFile:
    """A file as a task leaves it."""
    meta = pa.array(
        [{"id": str(index), "time": None, "parent": None, "index": None, "count": None, "headers": None}
         for index, _ in enumerate(bodies)],
        pa.struct([("id", pa.string()), ("time", pa.timestamp("us", "UTC")), ("parent", pa.string()),
                   ("index", pa.int64()), ("count", pa.int64()), ("headers", pa.map_(pa.string(), pa.string()))]),
    )  # fmt: skip
    batch = pa.RecordBatch.from_arrays(
        [pa.array([found.place] * len(bodies), pa.int32()), pa.array([json.dumps(body).encode() for body in bodies]),
         pa.array([True] * len(bodies)), meta],
        names=["at", "body", "written", "meta"],
    )  # fmt: skip
    staging = Staging("key", str(home), str(home))
    staging.gate.open()
    writing = TaskWriter({found.place: found}, staging).begin()
    writing.write(batch)
    (manifest,) = writing.close()
    return StagedFile("x", manifest["path"], None, len(bodies), partition)


def said(action: Any) -> str:
    with pytest.raises(PenstockError) as caught:
        action()
    return str(caught.value)


def test_a_sink_that_makes_no_sense_is_refused() -> None:
    assert said(lambda: Postgres(URL, "a.b.c")) == (
        "BadEndpoint: 'a.b.c' is not a table name\n  fix  write 'table' or 'schema.table'"
    )
    assert said(lambda: Postgres("", "t")).startswith("BadEndpoint: a PostgreSQL sink needs a url\n")
    assert said(lambda: Postgres(URL, "t" * 64)).startswith(f"BadEndpoint: '{'t' * 64}' is not a table name")
    assert said(lambda: Postgres(URL, "t", mode="merge")) == (
        "BadEndpoint: mode='merge' is not a mode\n  fix  write mode='append' or mode='upsert'"
    )
    both = "\n  fix  give both mode='upsert' and key=[...], or neither"
    assert said(lambda: Postgres(URL, "t", mode="upsert")) == f"BadEndpoint: mode='upsert' without a key{both}"
    assert said(lambda: Postgres(URL, "t", key=["id"])) == f"BadEndpoint: mode='append' with a key{both}"
    assert Postgres(URL, "t", "upsert", "id").key == ("id",)


def test_keys_and_names_are_checked_against_the_schema() -> None:
    assert said(lambda: target(Postgres(URL, "t", "upsert", ["ident"]))) == (
        "BadSchema: the key of postgres t at postgresql://ann:***@db.example.org:5432/shop is 'ident', and channel 'x' "
        "has no field 'ident'\n  fix  known: id, note"
    )
    assert "has 'a' as ARRAY<STRING>" in said(lambda: target(Postgres(URL, "t", "upsert", ["a"]), "a ARRAY<STRING>"))
    assert said(lambda: target(Postgres(URL, "t"), f"{'n' * 64} STRING")).startswith(
        f"BadSchema: channel 'x' writes a column '{'n' * 64}': PostgreSQL has no names that long"
    )
    assert said(lambda: target(Postgres(URL, "t"), "_position BIGINT")).startswith(
        "BadSchema: channel 'x' writes columns, and '_position' is one that Penstock adds itself"
    )
    app = App("a", Route("r", Memory((), ORDER)).to("x", Void()), dead_letters=Postgres(URL, "t", "upsert", ["id"]))
    assert said(lambda: targets(app.plan)).startswith("BadEndpoint: dead letters cannot replace each other\n")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (URL, "postgresql://ann:***@db.example.org:5432/shop"),
        ("postgresql://ann:p@ss/w@db/shop", "postgresql://ann:***@db/shop"),
        ("postgresql://ann@db/shop?password=hunter2&x=1", "postgresql://ann@db/shop?password=***&x=1"),
        ("host=db password='hunter 2' user=ann", "host=db password=*** user=ann"),
        ("postgresql://db:5432/shop", "postgresql://db:5432/shop"),
        ("postgresql://ann:${SHOP_PASSWORD}@db/shop", "postgresql://ann:***@db/shop"),
    ],
)
def test_passwords_are_never_shown(url: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    sink = Postgres(url, "orders")
    assert sink.address == shown
    assert str(sink) == f"postgres orders at {shown}"
    assert repr(sink) == "Postgres(table='orders', mode='append', key=())"
    app = App("a", Route("r", Memory((), ORDER)).to("x", sink), dead_letters=sink)
    for text in (app.explain(), str(app.routes), sink.hide(f"cannot reach {sink.full_url()}")):
        assert "hunter" not in text
        assert "p@ss" not in text


def test_the_line_of_an_error_has_no_password() -> None:
    text = said(lambda: Route("r", Memory((), ORDER)).to("x", Postgres("postgresql://ann:hunter2@db/shop", "a.b.c")))
    assert "hunter2" not in text
    app = App("a", Route("r", Memory()).to("y", Void()), sinks={"x": Postgres("postgresql://a:hunter2@db", "t")})
    text = said(lambda: app.plan)
    assert 'Postgres("postgresql://a:***@db", "t")' in text
    assert "hunter2" not in text


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    sink = Postgres("postgresql://ann:${SHOP_PASSWORD}@db/shop", "orders")
    assert said(sink.full_url) == (
        "BadEndpoint: the url of table 'orders' names ${SHOP_PASSWORD}, which is not set\n"
        "  fix  set the environment variable SHOP_PASSWORD"
    )


def test_yaml_both_ways() -> None:
    text = (
        "app: orders\nroutes:\n  - route: r\n    from: {memory: true, format: json, schema: id BIGINT}\n    steps:\n"
        "      - to: x\nsinks:\n"
        "  x: {postgres: 'postgresql://${USER}@db/shop', table: orders, mode: upsert, key: [id]}\n"
        "dead_letters: {postgres: 'postgresql://ann:${PASSWORD}@db/shop', table: log.dead}\n"
    )
    app = from_yaml(text)
    assert app.sinks["x"] == Postgres("postgresql://${USER}@db/shop", "orders", "upsert", ("id",))
    assert app.dead_letters == Postgres("postgresql://ann:${PASSWORD}@db/shop", "log.dead")
    assert to_yaml(app) == text
    open_secret = App("a", Route("r", Memory((), ORDER)).to("x"), sinks={"x": Postgres(URL, "t")})
    assert said(lambda: to_yaml(open_secret)) == (
        "BadEndpoint: the sink of channel 'x': a password is not written to a file\n"
        "  fix  put it into an environment variable and write ${NAME} in the url"
    )
    assert "needs 'table'" in said(lambda: from_yaml(text.replace("table: orders, ", "")))


def test_rows_have_fields_and_what_is_known(spark: SparkSession, postgres: Database) -> None:
    given = [
        Message("one", b'{"id": 1, "note": "a\\u0000b", "price": 1.5, "paid": true, "tags": ["x", null],'
                       b' "to": {"city": "K\\u0000ln"}, "x": {"deep": [1, "\\u0000"]}}', headers={"h": "1"}),
        {"id": 2, "x": [1.5]}, {"id": "wrong"}, b"\xff",
    ]  # fmt: skip
    sink, dead = Postgres(postgres.url, "orders"), Postgres(postgres.url, "dead_letters")
    before = datetime.now(UTC)
    result = run_batch(
        App("a", Route("r", Memory(given, ORDER)).filter(body.id > 0).to("x", sink), dead_letters=dead), spark
    )
    assert result.summary.delivered == {"x": 2}
    first, second = postgres.rows("orders")
    assert first.pop("_time") >= before
    assert {name: json.loads(first.pop(name)) for name in ("tags", "to", "x", "_headers")} == {
        "tags": ["x", None], "to": {"city": "K�ln"}, "x": {"deep": [1, "�"]}, "_headers": {"h": "1"},
    }  # fmt: skip
    assert first == {
        "id": 1, "note": "a�b", "price": 1.5, "paid": True, "_id": "one", "_parent": None, "_index": None,
        "_count": None, "_position": 1,
    }  # fmt: skip
    assert (second["id"], second["_id"], second["note"], second["tags"]) == (2, "r/0/1", None, None)
    wrong, broken = postgres.rows("dead_letters")
    assert (wrong["error"], wrong["step"], wrong["offset"], wrong["attempt"]) == ("WrongType", "decode", 2, 1)
    assert (broken["body"], broken["encoding"]) == (b"\xff", "base64")
    (marker, _) = postgres.run("SELECT * FROM penstock_batches ORDER BY channel DESC")
    assert (marker["channel"], marker["batch"], marker["rows"]) == ("x", 0, 2)
    assert marker["stream"].startswith("a-")


def test_a_batch_is_loaded_once(postgres: Database, tmp_path: Path) -> None:
    found = target(Postgres(postgres.url, "orders"))
    prepare([found])
    file = staged(found, tmp_path, {"id": 1}, {"id": 2})
    for _ in range(2):
        load([file], found, "orders-query-000000007")
    Path(file.path).unlink()
    load([file], found, "orders-query-000000007")
    assert [row["id"] for row in postgres.rows("orders")] == [1, 2]
    assert said(lambda: load([file], found, "orders-query-000000008")).startswith(
        "BadEndpoint: batch orders-query-000000008 was computed for postgres orders at "
    )
    assert [row["batch"] for row in postgres.run("SELECT batch FROM penstock_batches")] == [7]


def test_rows_keep_the_order_of_their_tasks_and_batches(postgres: Database, tmp_path: Path) -> None:
    found = target(Postgres(postgres.url, "orders"))
    prepare([found])
    expected = []
    for batch in range(3):
        ids = range(batch * 20_000, (batch + 1) * 20_000)
        expected += ids
        halves = [
            staged(found, tmp_path, *({"id": number} for number in part), partition=number)
            for number, part in enumerate((ids[:12_000], ids[12_000:]))
        ]
        load(halves, found, f"orders-query-{batch:09d}")
    assert [row["id"] for row in postgres.rows("orders", "id")] == expected


def test_upsert_replaces_the_row_with_the_same_key(postgres: Database, tmp_path: Path) -> None:
    found = target(Postgres(postgres.url, "orders", "upsert", ["id"]))
    prepare([found])
    prepare([found])
    load([staged(found, tmp_path, {"id": 1, "note": "a"}, {"id": 2, "note": "b"}, {"id": 1, "note": "c"},
                 {"note": "no key"}, {"note": "no key"})], found, "orders-query-000000000")  # fmt: skip
    load([staged(found, tmp_path, {"id": 2, "note": "d"})], found, "orders-query-000000001")
    rows = [(row["id"], row["note"]) for row in postgres.rows("orders")]
    assert rows == [(1, "c"), (None, "no key"), (None, "no key"), (2, "d")]


def test_markers_of_long_ago_are_removed(postgres: Database, tmp_path: Path) -> None:
    found = target(Postgres(postgres.url, "orders"))
    prepare([found])
    file = staged(found, tmp_path, {"id": 1})
    for batch in range(KEPT_INTENTS + 3):
        load([file], found, f"orders-query-{batch:09d}")
    load([file], found, "orders-other-000000000")
    assert len(postgres.run("SELECT batch FROM penstock_batches")) == KEPT_INTENTS + 1
    assert len(postgres.rows("orders")) == KEPT_INTENTS + 4


def test_a_table_in_a_schema_of_ones_own(postgres: Database, tmp_path: Path) -> None:
    found = target(Postgres(postgres.url, 'sa"les.Or ders'.replace('"', "")))
    text = said(lambda: prepare([found]))
    assert 'schema "sales" does not exist' in text
    postgres.run("CREATE SCHEMA sales")
    prepare([found])
    load([staged(found, tmp_path, {"id": 1})], found, "orders-query-000000000")
    assert len(postgres.rows('sales."Or ders"')) == 1
    assert len(postgres.run("SELECT * FROM sales.penstock_batches")) == 1


def test_a_table_that_is_there_is_used_as_it_is(postgres: Database, tmp_path: Path) -> None:
    postgres.run("CREATE TABLE orders (note varchar, id numeric PRIMARY KEY, since timestamptz DEFAULT now())")
    found = target(Postgres(postgres.url, "orders", "upsert", "id"))
    prepare([found])
    load([staged(found, tmp_path, {"id": 1, "note": "a"})], found, "orders-query-000000000")
    load([staged(found, tmp_path, {"id": 1, "note": "b"})], found, "orders-query-000000001")
    assert postgres.run("SELECT id::int, note FROM orders") == [{"id": 1, "note": "b"}]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("(id bigint)", "table 'orders' has no column 'note' for channel 'x'\n"
                        '  fix  add it: ALTER TABLE "orders" ADD "note" text'),
        ("(id integer, note text)", "column 'id' of table 'orders' is integer, and channel 'x' needs bigint\n"
                                    "  fix  make it bigint or numeric, or name another table"),
        ("(id bigint, note varchar(5))",
         "column 'note' of table 'orders' is character varying(5), and channel 'x' needs text\n"
         "  fix  make it text or character varying, or name another table"),
        ("(id bigint, note text, who text NOT NULL)",
         "column 'who' of table 'orders' must have a value, and messages have none for it\n"
         "  fix  give it a default, or let it be null"),
        ("(id bigint, note text)", "table 'orders' has no unique index on id\n"
                                   '  fix  make one: CREATE UNIQUE INDEX ON "orders" ("id")'),
    ],
)  # fmt: skip
def test_a_table_that_messages_do_not_fit_into_is_refused_before_spark_starts(
    table: str, text: str, postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run(f"CREATE TABLE orders {table}")
    monkeypatch.setattr("penstock.spark.run.session", lambda name: pytest.fail("Spark was started"))
    sink = Postgres(postgres.url, "orders", "upsert", "id")
    app = App("a", Route("r", Memory((), Json("id BIGINT, note STRING"))).to("x", sink), dead_letters=Void())
    assert said(lambda: run_batch(app)) == f"BadSchema: {text}"


def test_no_server_and_no_database_say_so(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "PATIENCE_SECONDS", 0.3)
    text = said(lambda: prepare([target(Postgres("postgresql://ann:hunter2@127.0.0.1:1/shop", "orders"))]))
    assert text.startswith(
        "BadEndpoint: no connection to PostgreSQL for table 'orders' at postgresql://ann:***@127.0.0.1:1/shop: "
    )
    assert "Connection refused" in text
    assert text.endswith("\n  fix  check that the server runs, the url, and the user's password")
    elsewhere = postgres.url.replace("/test_", "/nothing_")
    monkeypatch.setattr(driver, "PATIENCE_SECONDS", 60)
    assert "does not exist" in said(lambda: prepare([target(Postgres(elsewhere, "orders"))]))


def test_a_refused_batch_changes_nothing_and_can_be_loaded_later(postgres: Database, tmp_path: Path) -> None:
    postgres.run("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")
    found = target(Postgres(postgres.url, "orders"))
    prepare([found])
    file = staged(found, tmp_path, {"id": 1}, {"id": 1})
    text = said(lambda: load([file], found, "orders-query-000000000"))
    assert text.startswith("BadEndpoint: PostgreSQL refused table 'orders' at postgresql://postgres:***@/test_")
    assert "duplicate key value violates unique constraint" in text
    assert text.endswith("\n  fix  mend the table or the server and start again: what was computed is not lost")
    assert postgres.run("SELECT * FROM penstock_batches") == []
    upsert = target(Postgres(postgres.url, "orders", "upsert", "id"))
    load([file], upsert, "orders-query-000000000")
    assert len(postgres.run("SELECT * FROM orders")) == 1


def test_json_that_the_server_would_refuse_is_mended() -> None:
    assert storable(r'"a\u0000b \\u0000 \ud83d\ude00 \ud83d x \udE00 \n \u00e9"') == (
        r'"a\ufffdb \\u0000 \ud83d\ude00 \ufffd x \ufffd \n \u00e9"'
    )


def test_a_server_that_is_down_loses_nothing(
    spark: SparkSession, postgres: Database, postgres_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "PATIENCE_SECONDS", 0.3)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"id": 1}\n{"id": 2}\nbroken\n')
    route = Route("r", Files(tmp_path / "in", ORDER)).filter(default(body.id, 0) > 0)
    app = App("a", route.tap("y").to("x", Postgres(postgres.url, "orders")), sinks={"y": Files(tmp_path / "y")},
              dead_letters=Postgres(postgres.url, "dead"))  # fmt: skip

    def down(files: Any, found: Target, key: str) -> None:
        postgres_server.stop()
        load(files, found, key)

    try:
        with monkeypatch.context() as patch:
            patch.setattr("penstock.spark.write.publish.load", down)
            text = said(lambda: run_stream(app, str(tmp_path / "checkpoint"), once=True, spark=spark))
        assert text.startswith("BadEndpoint: the stream stopped: no connection to PostgreSQL for table 'orders' at ")
        assert "secret" not in text
    finally:
        postgres_server.ensure_postgres_running()
    result = run_stream(app, str(tmp_path / "checkpoint"), once=True, spark=spark)
    assert (result.summary.received, result.summary.delivered) == (3, {"x": 2, "y": 2})
    assert [row["id"] for row in postgres.rows("orders")] == [1, 2]
    assert len(postgres.rows("dead")) == 1
    assert not any((tmp_path / "checkpoint" / "penstock-staging").iterdir())

"""Dates, instants, exact numbers and bytes in every kind of sink: typed where the sink has types, else as text."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
from pyspark.sql import SparkSession

from penstock import App, Csv, Files, Json, Memory, Parquet, Route, Xml, body, now, sum_of
from penstock.endpoints.postgres import Postgres
from penstock.patterns.strategy import fold
from penstock.spark.run import run_batch
from tests.database import Database
from tests.spark.files import lines

FIELDS = "id BIGINT, day DATE, at TIMESTAMP, amount DECIMAL(12, 2), tiny DECIMAL(38, 10), content BINARY"
VALUES = {
    "id": 1, "day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 10, 0, 0, 5, tzinfo=UTC),
    "amount": Decimal("9999999999.99"), "tiny": Decimal("0.0000000001"), "content": b"\x00hi",
}  # fmt: skip
BODY = (
    b'{"day":"2024-02-29","at":"2024-02-29T10:00:00.000005Z","amount":9999999999.99,"tiny":0.0000000001,'
    b'"content":"AGhp","id":1}'
)


def app(*routes: Route, **sinks: Any) -> App:
    return App("values", *routes, sinks=sinks, dead_letters=Memory())


def test_sinks_have_the_types_that_they_can_have(spark: SparkSession, postgres: Database, tmp_path: Path) -> None:
    start = Route("in", Memory((VALUES, {"id": 2}), Json(FIELDS))).enrich({"id": body.id})
    start = start.multicast("table", "server", "csv", "xml", "json")
    sinks = {
        "table": Parquet(str(tmp_path / "table")), "server": Postgres(postgres.url, "orders"),
        "csv": Files(str(tmp_path / "csv"), Csv(FIELDS)), "xml": Files(str(tmp_path / "xml"), Xml(root="order")),
        "json": Files(str(tmp_path / "json")),
    }  # fmt: skip
    result = run_batch(app(start, **sinks))
    assert not result.dead
    assert lines(tmp_path / "json") == [BODY, b'{"id":2}']
    assert lines(tmp_path / "csv")[1:] == [
        b"1,2024-02-29,2024-02-29T10:00:00.000005Z,9999999999.99,0.0000000001,AGhp", b"2,,,,,"
    ]  # fmt: skip
    assert b"<amount>9999999999.99</amount><tiny>0.0000000001</tiny>" in b"".join(lines(tmp_path / "xml"))
    table = parquet.read_table(tmp_path / "table")
    nothing = dict.fromkeys(VALUES) | {"id": 2}
    assert table.select(list(VALUES)).to_pylist() == [VALUES, nothing]
    assert table.schema.field("amount").type == pa.decimal128(12, 2)
    asked = "id, day, at, amount::text AS amount, tiny::text AS tiny, content"
    texts = {"amount": "9999999999.99", "tiny": "0.0000000001"}
    assert postgres.rows("orders", asked) == [VALUES | texts, nothing]
    names = ", ".join(f"'{name}'" for name in ("day", "at", "amount", "content"))
    kinds = postgres.run("SELECT attname, format_type(atttypid, atttypmod) AS kind FROM pg_attribute "
                         f"WHERE attrelid = 'orders'::regclass AND attname IN ({names})")  # fmt: skip
    assert {row["attname"]: row["kind"] for row in kinds} == {
        "day": "date", "at": "timestamp with time zone", "amount": "numeric(12,2)", "content": "bytea"
    }  # fmt: skip


def test_keys_and_sums_of_exact_numbers(spark: SparkSession) -> None:
    start = Route("in", Memory((VALUES, VALUES | {"id": 2}), Json(FIELDS)))
    folded = start.aggregate(fold(total=sum_of(body.amount)), by=[body.day, body.tiny], size=2).enrich({"at": now()})
    result = run_batch(app(folded.to("out"), out=Memory()))
    (message,) = result.channels["out"]
    assert message.raw.startswith(b'{"total":19999999999.98,"at":"20')
    assert message.headers["correlation"] == '["2024-02-29",0.0000000001]'

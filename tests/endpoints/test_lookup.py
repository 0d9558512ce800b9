"""Tables that messages are enriched from: what they read, and what they refuse."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from penstock import App, Json, Memory, Route, Void, body, lookup_table
from penstock.errors import PenstockError

ROWS = [{"key": "a", "city": "Rome", "rank": 1}, {"key": "b", "city": None, "rank": 2}]


def said(make: object) -> str:
    with pytest.raises(PenstockError) as caught:
        make()  # type: ignore[operator]
    return str(caught.value)


def test_a_table_reads_the_same_from_everywhere(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,city,rank\na,Rome,1\nb,,2\n")
    (tmp_path / "t.jsonl").write_text('{"key": "a", "city": "Rome", "rank": 1}\n{"key": "b", "rank": 2}\n')
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "t.parquet")
    tables = [lookup_table(ROWS, "key"), lookup_table(pa.Table.from_pylist(ROWS), "key")]
    tables += [lookup_table(tmp_path / f"t.{ending}", "key") for ending in ("jsonl", "parquet")]
    for table in tables:
        assert table.rows == {"a": ROWS[0], "b": ROWS[1]}
        assert table.schema.ddl() == "key STRING, city STRING, rank BIGINT"
    # CSV cannot tell the empty text from none
    assert lookup_table(tmp_path / "t.csv", "key").rows == {"a": ROWS[0], "b": {**ROWS[1], "city": ""}}
    assert str(lookup_table(tmp_path / "t.csv", "key")) == "t.csv"


def test_dates_and_decimals_are_what_they_are() -> None:
    table = lookup_table([{"key": 1, "day": datetime.date(2024, 2, 29), "price": Decimal("1.50")}], "key")
    assert table.rows == {1: {"key": 1, "day": datetime.date(2024, 2, 29), "price": Decimal("1.50")}}
    assert table.schema.ddl() == "key BIGINT, day DATE, price DECIMAL(3, 2)"


def test_rows_without_a_key_are_never_found() -> None:
    without = [{"key": None, "city": "x"}, {"key": None, "city": "y"}]
    assert lookup_table([*ROWS, *without], "key").rows.keys() == {"a", "b"}


def test_a_key_that_is_not_unique_is_refused() -> None:
    assert said(lambda: lookup_table([*ROWS, ROWS[0]], "key", name="cities")) == (
        "BadEndpoint: the table cities has 2 rows for key = a\n"
        "  fix  a message is enriched by one row: make the key unique"
    )


def test_keys_that_a_dictionary_would_not_tell_apart_are_refused() -> None:
    assert said(lambda: lookup_table([{"key": 0.0}, {"key": 1.5}, {"key": -0.0}], "key")) == (
        "BadEndpoint: the table table has 2 rows for key = 0.0\n"
        "  fix  a message is enriched by one row: make the key unique"
    )


def test_a_key_that_is_no_single_value_is_refused() -> None:
    assert said(lambda: lookup_table([{"key": [1]}], "key", name="lists")) == (
        "BadEndpoint: the key key of the table lists is ARRAY<BIGINT>\n"
        "  fix  find rows by a column of text, numbers or booleans"
    )


def test_a_key_that_is_not_a_column_is_refused() -> None:
    assert said(lambda: lookup_table(ROWS, "kye", name="cities")) == (
        "BadEndpoint: the table cities has no column 'kye'\n  fix  did you mean 'key'? known: city, key, rank"
    )


def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.csv"
    assert said(lambda: lookup_table(missing, "key")).startswith(f"BadEndpoint: cannot read the table {missing}: ")
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")
    assert "BadEndpoint: cannot read the table" in said(lambda: lookup_table(tmp_path / "bad.parquet", "key"))
    assert said(lambda: lookup_table(tmp_path / "t.xlsx", "key")) == (
        f"BadEndpoint: cannot read the table {tmp_path}/t.xlsx\n  fix  use a .csv, .parquet or .jsonl file"
    )
    assert said(lambda: lookup_table([{"key": 1}, {"key": "one"}], "key", name="mixed")) == (
        "BadEndpoint: the rows of mixed do not make a table: "
        "Could not convert 'one' with type str: tried to convert to int64\n"
        "  fix  give a column one type"
    )


def test_a_key_of_another_type_than_the_messages_is_refused() -> None:
    source, cities = Memory((), Json("number BIGINT")), lookup_table(ROWS, "key", name="cities")
    app = App("a", Route("r", source).enrich_from(cities, body.number).to("x", Void()))
    assert said(lambda: app.plan).startswith(
        "TypeMismatch: route 'r', step 'enrich_from': the key of cities is STRING, but number is BIGINT"
    )

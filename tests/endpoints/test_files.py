"""How file endpoints are set up, and what is refused before anything runs."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from penstock import Files, Parquet, Table, Text
from penstock.endpoints.files import ADDED, find_files
from penstock.errors import PenstockError


def said(make: object) -> str:
    with pytest.raises(PenstockError) as caught:
        make()  # type: ignore[operator]
    return str(caught.value)


def test_a_path_is_a_file_a_directory_or_a_pattern(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "_staged", ".hidden", "c.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.jsonl").write_text("")

    def names(path: str) -> list[str]:
        return [Path(found).name for found in find_files(str(tmp_path / path))]

    assert names("") == ["a.jsonl", "b.jsonl", "c.txt"]
    assert names("a.jsonl") == ["a.jsonl"]
    assert names("*.jsonl") == ["a.jsonl", "b.jsonl"]
    assert names("**/*.jsonl") == ["a.jsonl", "b.jsonl", "d.jsonl"]
    assert names("nothing") == []


def test_files_without_a_format_are_text(tmp_path: Path) -> None:
    assert Files(tmp_path).body_format == Text()
    assert str(Files("in")) == "files in"


def test_a_mode_is_append_or_overwrite() -> None:
    expected = "BadEndpoint: mode='replace' is not a mode\n  fix  write mode='append' or mode='overwrite'"
    assert said(lambda: Files("x", mode="replace")) == expected
    assert said(lambda: Parquet("x", mode="replace")) == expected
    assert said(lambda: Table("x", mode="replace").as_parquet()) == expected


def test_a_table_name_is_a_word() -> None:
    assert said(lambda: Table("../orders")) == (
        "BadEndpoint: '../orders' is not a table name\n  fix  use letters, digits and underscores"
    )
    assert Table("orders", warehouse="w").path == "w/orders"


def test_the_columns_of_a_parquet_file_are_the_body(tmp_path: Path) -> None:
    counts = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    columns = {"id": pa.array([1], pa.int16()), "tags": [["a"]], "who": [{"age": 1.5}], "counts": counts}
    parquet.write_table(pa.table({**columns, **{name: ["x"] for name in ADDED}}), tmp_path / "a.parquet")
    expected = "id BIGINT, tags ARRAY<STRING>, who STRUCT<age: DOUBLE>, counts MAP<STRING, BIGINT>"
    assert Parquet(tmp_path).body_format.schema.ddl() == expected
    assert Parquet(tmp_path, expected).body_format.schema.ddl() == expected


def test_a_parquet_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"id": [1], "day": [datetime.time(1)], "who": [{"age": 1}]}), path)
    assert said(lambda: Parquet(path).body_format) == (
        f"BadSchema: column 'day' of {path} is time64[us], which a body cannot hold\n"
        "  fix  give a schema without it, or store it as text or a number"
    )
    assert said(lambda: Parquet(path, "id STRING").body_format) == (
        f"BadSchema: column 'id' of {path} is BIGINT, but the schema says STRING"
    )
    assert said(lambda: Parquet(path, "who STRUCT<age: STRING>").body_format) == (
        f"BadSchema: column 'who' of {path} is STRUCT<age: BIGINT>, but the schema says STRUCT<age: STRING>"
    )
    assert Parquet(path, "id BIGINT, not_there STRING").body_format.schema.names == ("id", "not_there")
    path.write_bytes(b"not parquet")
    unreadable = said(lambda: Parquet(path).body_format)
    assert unreadable.startswith(f"BadEndpoint: cannot read {path}: Parquet magic bytes not found")


def test_a_table_that_is_not_there_yet_needs_a_schema(tmp_path: Path) -> None:
    assert said(lambda: Table("none", warehouse=str(tmp_path)).body_format) == (
        f"BadEndpoint: there is no Parquet file at {tmp_path}/none\n  fix  check the path, or give the schema"
    )
    assert Table("none", "id BIGINT", warehouse=str(tmp_path)).body_format.schema.ddl() == "id BIGINT"

"""Parquet tables that tasks read: every row once, whatever the files are cut into, and nothing decoded twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import App, Parquet, Route, Table, Void, body, jsonpath
from penstock.errors import BadEndpoint, BadSchema
from penstock.expr.evaluate import expression_key
from penstock.formats import Json
from penstock.kernel.block import Arrived
from penstock.kernel.reading import Decoder
from penstock.plan.plan import Entry
from penstock.spark.read.lines import chunks
from penstock.spark.read.parquet import ParquetPieces

NESTED = ("id BIGINT, note STRING, price DOUBLE, is_new BOOLEAN, tags ARRAY<STRING>, "
          "who STRUCT<name: STRING, age: BIGINT>")  # fmt: skip


def entry_of(source: Parquet | Table) -> Entry:
    return App("a", Route("r", source).to("x", Void())).plan.entries[0]


def arrived(source: Parquet | Table) -> list[Arrived]:
    pieces = ParquetPieces(entry_of(source))
    return [block for chunk in pieces.found() for block in pieces.blocks(chunk)]


def bodies(source: Parquet | Table) -> list[bytes]:
    return [raw for block in arrived(source) for raw in block.bodies.to_pylist()]


def ids(source: Parquet | Table) -> list[str]:
    return [one for block in arrived(source) for one in block.identities(np.arange(len(block.bodies))).to_pylist()]


def put(path: Path, rows: dict[str, Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), path, **options)
    return path


ROWS = st.lists(
    st.fixed_dictionaries({
        "id": st.none() | st.integers(-(2**63), 2**63 - 1), "note": st.none() | st.text(st.characters(codec="utf-8")),
        "price": st.none() | st.floats(allow_nan=False, allow_infinity=False), "is_new": st.none() | st.booleans(),
        "tags": st.none() | st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=3), max_size=3),
        "who": st.none() | st.fixed_dictionaries({"name": st.none() | st.just("ann"), "age": st.none() | st.just(7)}),
    }), min_size=1, max_size=8)  # fmt: skip


@given(rows=ROWS)
def test_bodies_are_what_the_reference_writes_and_read_as_the_columns(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("table") / "a.parquet"
    entry = entry_of(Parquet(path, NESTED))
    kinds = Json(NESTED).decode_batch(pa.array([b"{}"]), entry.format.schema)[0].type
    table = pa.Table.from_pylist(rows, pa.schema(list(kinds)))
    pq.write_table(table, path)
    (block,) = arrived(Parquet(path, NESTED))
    assert block.bodies.to_pylist() == [Json(NESTED).encode(row) for row in table.to_pylist()]
    decoded, failures = Json(NESTED).decode_batch(block.bodies, entry.format.schema)
    assert not failures
    assert block.fields is not None
    assert [_lean(row) for row in block.fields.to_pylist()] == [_lean(row) for row in decoded.to_pylist()]


def _lean(value: Any) -> Any:
    """Nothing tells an object without values from one whose values are null."""
    if isinstance(value, dict):
        return {name: _lean(inner) for name, inner in value.items() if inner is not None}
    return value


@pytest.mark.parametrize("chunk_bytes", [100, 1000, 5000, 1 << 20])
def test_chunks_share_the_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int) -> None:
    path = put(tmp_path / "t" / "a.parquet", {"id": list(range(1000))}, row_group_size=70)
    monkeypatch.setattr("penstock.spark.read.parquet.chunks", lambda *given: chunks(*given, chunk_bytes=chunk_bytes))
    source = Parquet(tmp_path / "t")
    assert len(ParquetPieces(entry_of(source)).found()) == -(-path.stat().st_size // chunk_bytes)
    assert ids(source) == [f"a.parquet/0/{number}" for number in range(1000)]
    assert bodies(source) == [b'{"id":%d}' % number for number in range(1000)]


def test_wide_rows_come_in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.parquet", {"text": [f"{number:0>1000}" for number in range(100)]}, use_dictionary=False)
    monkeypatch.setattr("penstock.spark.read.parquet.BLOCK_BYTES", 20_000)
    assert max(len(block.bodies) for block in arrived(Parquet(path))) < 30
    assert ids(Parquet(path))[99] == "a.parquet/0/99"


def test_a_table_is_its_visible_files_and_the_folders_of_its_columns(tmp_path: Path) -> None:
    put(tmp_path / "b.parquet", {"id": [1]})
    put(tmp_path / "a.parquet", {"id": [2], "region": ["US"]})
    put(tmp_path / "region=E U" / "day=3" / "a", {"id": [3]})
    put(tmp_path / "region=a%2Fb" / "a.parquet", {"id": [4], "region": ["hidden by the folder"]})
    put(tmp_path / "region=__HIVE_DEFAULT_PARTITION__" / "a.parquet", {"id": [5]})
    put(tmp_path / "_old.parquet", {"id": [6]})
    put(tmp_path / "_temporary" / "a.parquet", {"id": [7]})
    put(tmp_path / "elsewhere" / "a.parquet", {"id": [8]})
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.crc").touch()
    source = Parquet(tmp_path, "id BIGINT, region STRING, day BIGINT")
    assert dict(zip(ids(source), bodies(source), strict=True)) == {
        "a.parquet/0/0": b'{"id":2,"region":"US"}',
        "b.parquet/0/0": b'{"id":1}',
        "region=E U/day=3/a/0/0": b'{"id":3,"region":"E U","day":3}',
        "region=__HIVE_DEFAULT_PARTITION__/a.parquet/0/0": b'{"id":5}',
        "region=a%2Fb/a.parquet/0/0": b'{"id":4,"region":"a/b"}',
    }


def test_columns_fit_the_schema_or_the_file_is_named(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", {"id": pa.array([1], pa.int8()), "who": [{"name": "ann", "more": 1}], "more": [1]})
    source = Parquet(tmp_path, "id BIGINT, who STRUCT<age: BIGINT, name: STRING>, absent ARRAY<STRING>")
    assert bodies(source) == [b'{"id":1,"who":{"name":"ann"}}']
    put(tmp_path / "b.parquet", {"id": ["one"]})
    with pytest.raises(BadSchema, match=r"column 'id' of .*b\.parquet is STRING, but the schema says BIGINT"):
        bodies(source)
    put(tmp_path / "b.parquet", {"id": pa.array([2**63], pa.uint64())})
    with pytest.raises(BadEndpoint, match=r"cannot read .*b\.parquet: Integer value 9223372036854775808 not in range"):
        bodies(source)
    (tmp_path / "b.parquet").write_bytes(b"no table")
    with pytest.raises(BadEndpoint, match=r"cannot read .*b\.parquet: "):
        bodies(source)


def test_bytes_that_are_no_text_name_their_file(tmp_path: Path) -> None:
    wrong = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    path = put(tmp_path / "a.parquet", {"note": wrong})
    with pytest.raises(BadEndpoint, match=r"cannot read .*a\.parquet: .*UTF8"):
        bodies(Parquet(path))


def test_a_file_without_the_columns_of_the_schema_has_empty_bodies(tmp_path: Path) -> None:
    path = put(tmp_path / "a.parquet", {"id": [1, 2, 3]})
    assert bodies(Parquet(path, "other STRING")) == [b"{}"] * 3


@pytest.fixture
def people(tmp_path: Path) -> Parquet:
    return Parquet(put(tmp_path / "a.parquet", {"id": [1, 2], "who": [{"name": "ann", "age": 3}, None]}))


def test_what_is_decoded_already_is_not_decoded_again(people: Parquet) -> None:
    entry = App("a", Route("r", people).filter(body.who.age > 1).to("x", Void())).plan.entries[0]
    (block,) = arrived(people)
    found, failures = Decoder(entry)(replace(block, bodies=pa.array([b"not", b"read"])))
    assert (found.table.to_pylist(), failures) == ([{"who": {"age": 3}}, {"who": None}], [])


def test_queries_look_at_the_bodies(people: Parquet) -> None:
    entry = App("a", Route("r", people).filter(jsonpath("$..age")).to("x", Void())).plan.entries[0]
    (block,) = arrived(people)
    found, failures = Decoder(entry)(block)
    assert (found.column(expression_key(entry.paths[0])).to_pylist(), failures) == ([True, False], [])

"""Rows are found by their keys, as a dictionary finds them: in memory and in a file, few and many at a time."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.endpoints import searchable
from penstock.endpoints.hashing import hashes
from penstock.endpoints.lookup import LookupTable, lookup_table
from penstock.endpoints.searchable import Searchable

NAN = float("nan")
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), st.text("aé\0z", max_size=90) | st.text(max_size=12)),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)),
    "double": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, NAN, math.inf, -math.inf, 2.0**53])),
    "boolean": (pa.bool_(), st.booleans()),
}


def table_of(keys: list[Any], kind: pa.DataType) -> LookupTable:
    places = pa.array(range(len(keys)), pa.int64())
    return lookup_table(pa.table({"key": pa.array(keys, kind), "place": places}), "key")


def found(table: LookupTable, keys: list[Any], kind: pa.DataType) -> list[int | None]:
    places = table.searchable.find(pa.array(keys, kind))
    return table.table["place"].take(places).to_pylist()  # type: ignore[no-any-return]


def right(table: LookupTable, keys: list[Any]) -> list[int | None]:
    """As the reference looks them up."""
    rows = [None if key is None else table.rows.get(key) for key in keys]
    return [None if row is None else row["place"] for row in rows]


def in_memory(table: LookupTable, _: Path) -> LookupTable:
    return table


def sent_along(table: LookupTable, _: Path) -> LookupTable:
    return pickle.loads(pickle.dumps(table))  # type: ignore[no-any-return]


def in_a_file(table: LookupTable, directory: Path) -> LookupTable:
    path = str(directory / "table.arrow")
    table.searchable.write(path)
    return pickle.loads(pickle.dumps(table.in_file(partial(str, path))))  # type: ignore[no-any-return]


@pytest.mark.parametrize("kept", [in_memory, sent_along, in_a_file])
@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_a_key_finds_what_a_dictionary_finds(
    kind: str, kept: Callable[[LookupTable, Path], LookupTable], tmp_path: Path, data: st.DataObject
) -> None:
    arrow, keys = KINDS[kind]
    stored = data.draw(st.lists(keys | st.none(), unique_by=lambda key: NAN if key is None or key != key else key))
    table = kept(table_of(stored, arrow), tmp_path)
    some = st.sampled_from(stored) if stored else st.none()
    asked = data.draw(st.lists(keys | some | st.none(), max_size=60))
    assert found(table, asked, arrow) == right(table, asked)
    assert [found(table, [key], arrow) for key in asked] == [[place] for place in right(table, asked)]


def test_zero_has_no_sign_and_what_is_no_number_is_never_found() -> None:
    for stored in (0.0, -0.0):
        table = table_of([stored, 1.0, NAN, NAN], pa.float64())
        for asked in ([0.0], [-0.0], [0.0, -0.0, 1.0, NAN, None]):
            assert found(table, asked, pa.float64()) == [0, 0, 1, None, None][: len(asked)]
        assert math.copysign(1, table.table["key"][0].as_py()) == math.copysign(1, stored)


def test_large_whole_numbers_are_not_rounded() -> None:
    table = table_of([2**53, 2**53 + 1, 2**63 - 1], pa.int64())
    assert found(table, [2**53 + 1], pa.int64()) == [1]
    assert found(table, [2**53 + 1, 2**63 - 2, 2**63 - 1, None], pa.int64()) == [1, None, 2, None]


def test_texts_with_one_number_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searchable, "hashes", lambda texts: np.zeros(len(texts), np.uint64))
    table = table_of(list("abcde"), pa.string())
    assert [found(table, [key], pa.string()) for key in "adex"] == [[0], [3], [4], [None]]


def test_texts_are_numbered_by_all_of_their_bytes() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "b" * 8, "b" * 9, "c" * 64, "c" * 65, "c" * 66, "d" * 65, "é"]
    numbers = hashes(pa.array(texts))
    assert len(set(numbers.tolist())) == len(texts)
    assert hashes(pa.array(["x", *texts, None]).slice(1, len(texts))).tolist() == numbers.tolist()
    assert hashes(pa.array(texts, pa.large_string())).tolist() == numbers.tolist()
    # A table that was written elsewhere has the same.
    assert hashes(pa.array(["customer-42"])).tolist() == [6148540923611236264]


def test_a_table_of_many_pieces_or_much_text_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"key": f"k{n}", "inner": {"names": [f"n{n}", None], "of": {"x": n}}} for n in range(10)]
    many = pa.concat_tables([pa.Table.from_pylist([row]) for row in rows])
    usual = Searchable.of(many, "key")
    monkeypatch.setattr(searchable, "WIDE_BYTES", 1)
    wide = Searchable.of(many, "key")
    assert wide.table.schema.field("key").type == pa.large_string()
    for one in (usual, wide):
        assert {column.num_chunks for column in one.table.columns} == {1}
        places = one.find(pa.array(["k3", "none", None]))
        assert one.table.take(places).to_pylist() == [rows[3], *[dict.fromkeys(("key", "inner"))] * 2]


def test_a_table_in_a_file_travels_without_its_rows(tmp_path: Path) -> None:
    table = table_of([f"key {n}" for n in range(10_000)], pa.string())
    there = in_a_file(table, tmp_path)
    assert found(there, ["key 77"], pa.string()) == [77]
    assert len(pickle.dumps(there)) < 1000 < len(pickle.dumps(table))

"""A bucket against a plain dictionary."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernel.state.keys import HIGH, LOW, Keys
from penstock.kernel.state.store import DEADLINE, GONE, NEVER, WEIGHT, Bucket, gone, sorted_by_key

PAYLOAD = pa.schema([("value", pa.string()), (WEIGHT, pa.int64())])
KEY = st.tuples(st.integers(-3, 3), st.integers(0, 2))
HELD = st.lists(st.tuples(st.integers(0, 20) | st.just(NEVER), st.text("ab", max_size=2)), max_size=3)


def rows(held: dict[tuple[int, int], list[tuple[int, str]]]) -> pa.Table:
    bucket = Bucket([], PAYLOAD)
    listed = [
        {HIGH: key[0], LOW: key[1], DEADLINE: values[0][0], GONE: False, "value": value, WEIGHT: 1}
        for key, values in held.items()
        for _, value in values
    ]
    empty = sorted(key for key, values in held.items() if not values)
    absent = Keys(np.array([k[0] for k in empty], np.int64), np.array([k[1] for k in empty], np.int64))
    return sorted_by_key([pa.Table.from_pylist(listed, bucket.schema), gone(absent, bucket.schema)])


def everything(held: pa.Table) -> pa.ChunkedArray:
    return held.column(GONE).is_valid()


def as_keys(listed: list[tuple[int, int]]) -> Keys:
    return Keys(np.array([k[0] for k in listed], np.int64), np.array([k[1] for k in listed], np.int64))


def listed(keys: Keys) -> list[tuple[int, int]]:
    return list(zip(keys.high.tolist(), keys.low.tolist(), strict=True))


@settings(max_examples=60)
@given(st.lists(st.dictionaries(KEY, HELD, max_size=8), max_size=8), st.lists(KEY, unique=True), st.integers(0, 20))
def test_a_bucket_holds_what_a_dictionary_holds(
    tmp_path_factory, batches: list[dict[tuple[int, int], list[tuple[int, str]]]], wanted: list, now: int
) -> None:
    directory: Path = tmp_path_factory.mktemp("runs")
    model: dict[tuple[int, int], list[tuple[int, str]]] = {}
    bucket = Bucket([], PAYLOAD)
    for batch in batches:
        model |= batch
        bucket = Bucket(bucket.add(rows(batch), str(directory), everything), PAYLOAD)
    present = {key: values for key, values in model.items() if values}

    found = bucket.find(as_keys(sorted(wanted)))
    expected = [(key, value) for key in sorted(wanted) for _, value in present.get(key, [])]
    assert list(zip(listed(Keys.of(found)), found.column("value").to_pylist(), strict=True)) == expected
    assert listed(bucket.due(now)) == sorted(key for key, values in present.items() if values[0][0] <= now)
    assert listed(bucket.all_keys()) == sorted(present)


def test_there_are_few_runs_and_their_sizes_grow(tmp_path: Path) -> None:
    bucket = Bucket([], PAYLOAD)
    random = np.random.default_rng(7)
    for _ in range(60):
        keys = np.unique(random.integers(0, 100_000, 500))
        batch = rows({(int(key), 0): [(NEVER, "x")] for key in keys})
        bucket = Bucket(bucket.add(batch, str(tmp_path), everything), PAYLOAD)
    sizes = [run.rows for run in bucket.runs]
    assert len(sizes) <= 8
    assert all(older > 2 * younger for older, younger in pairwise(sizes))

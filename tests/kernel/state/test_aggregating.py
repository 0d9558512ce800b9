"""The aggregator's algorithm agrees with the reference, batch after batch, on random messages and settings."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, Json, Memory, Route, body, collect, fold
from penstock.envelope import AT, DEAD, ID
from penstock.kernel.state.aggregating import Aggregating
from penstock.kernel.state.assembly import Assembly, Collecting, Folding, Partial, Result
from penstock.kernel.state.rows import COMPLETED_BY, GROUP_SIZE, KEY
from penstock.patterns import strategy as folds
from penstock.patterns.aggregate import REOPEN
from penstock.patterns.key import FLUSH
from penstock.reference.run import run_batches
from tests.kernel.state.batches import CARRIED, FATES, FILTERED, HERE, VALUE, Bench, Body

BODY = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", "c", "d"]),
        "v": st.integers(0, 9) | st.sampled_from([2**62, -(2**62), 2**63 - 1]),
        "done": st.integers(0, 3).map(lambda n: n == 0),
    }
)
BATCHES = st.lists(st.tuples(st.integers(1, 6), st.lists(BODY, max_size=12)), min_size=1, max_size=5)
POLICIES = st.fixed_dictionaries({
    "size": st.none() | st.integers(1, 4), "timeout": st.none() | st.integers(1, 8),
    "interval": st.none() | st.integers(1, 8), "when": st.booleans(),
    "batch_end": st.integers(0, 5).map(lambda number: number == 0),
    "on_timeout": st.sampled_from(["flush", "discard"]), "on_stop": st.sampled_from([None, "flush", "discard", "hold"]),
    "closed": st.sampled_from(["reopen", "dead", "filter"]), "folds": st.booleans(),
}).filter(lambda chosen: any(chosen[name] for name in ("size", "timeout", "interval", "when", "batch_end"))).map(
    lambda chosen: chosen if chosen["timeout"] or chosen["interval"] else chosen | {"on_timeout": "flush"}
)  # fmt: skip
LISTS = Collecting(VALUE, pa.field("s1", pa.struct([("items", pa.list_(pa.int64()))])), "items", "v", (), ())
SUMS = Folding(
    pa.field("s1", pa.struct([("total", pa.int64()), ("most", pa.int64()), ("n", pa.int64())])),
    (Partial("p0", "sum", "sequence", pa.int64()), Partial("p0_rough", "sum", "sequence", pa.float64()),
     Partial("p1", "max", "sequence", pa.int64())),
    (Result("total", ("p0",)), Result("most", ("p1",)), Result("n", ())), VALUE,
)  # fmt: skip


def app_with(chosen: dict[str, Any]) -> App:
    how = fold(total=folds.sum_of(body.v), most=folds.max_of(body.v), n=folds.count_of())
    options = {name: chosen[name] for name in ("size", "timeout", "interval", "batch_end", "on_timeout", "on_stop")}
    late = {} if chosen["closed"] == REOPEN else {"closed": chosen["closed"], "closed_for": 5}
    route = Route("r", Memory(format=Json("k STRING, v BIGINT, done BOOLEAN"))).aggregate(
        how if chosen["folds"] else collect("items", of="v"), by=body.k,
        when=body.done if chosen["when"] else None, name="step", **options, **late,
    )  # fmt: skip
    return App("state", route.to("out"), sinks={"out": Memory()}, dead_letters=Memory())


def algorithm_with(chosen: dict[str, Any]) -> Aggregating:
    assembly: Assembly = SUMS if chosen["folds"] else LISTS
    return Aggregating(
        chosen["size"], chosen["timeout"], chosen["interval"], chosen["when"], chosen["batch_end"], False,
        chosen["on_timeout"], chosen["on_stop"] or FLUSH, chosen["closed"],
        None if chosen["closed"] == REOPEN else 5.0, assembly, FATES, CARRIED,
    )  # fmt: skip


@settings(max_examples=300)
@given(BATCHES, POLICIES)
def test_the_algorithm_agrees_with_the_reference(
    tmp_path_factory, steps: list[tuple[int, list[Body]]], chosen: dict[str, Any]
) -> None:
    clock, batches = 0, []
    for wait, bodies in steps:
        clock += wait
        batches.append((float(clock), bodies))
    expected = run_batches(app_with(chosen).plan, batches)

    directory: Path = tmp_path_factory.mktemp("runs")
    bench = Bench(algorithm_with(chosen), directory)
    for number, (now, bodies) in enumerate(batches):
        bench.batch(now, bodies, stops=number == len(batches) - 1)

    made = [row for row in bench.out if row[AT] == HERE]
    found = Counter(
        (f"{row[ID]}+{row[GROUP_SIZE] - 1}", row[KEY], row[COMPLETED_BY], json.dumps(row["s1"])) for row in made
    )
    assert found == Counter(
        (
            message.id,
            message.headers["correlation"],
            message.headers["completed-by"],
            json.dumps(json.loads(message.raw)),
        )
        for message in expected.channels["out"]
    )
    assert sum(row[AT] == FILTERED for row in bench.out) == sum(expected.filtered.values())
    dead = [row for row in bench.out if row[AT] == DEAD]
    assert Counter(
        (row[ID], json.dumps(row["s0"], sort_keys=True), row["error"]["error"], row["error"]["reason"])
        for row in dead
    ) == Counter(
        (letter.message.id, json.dumps(json.loads(letter.message.raw), sort_keys=True), letter.error, letter.reason)
        for letter in expected.dead
    )
    assert bench.held == expected.held
    assert bench.copies == expected.copied

"""The resequencer's algorithm agrees with the reference, batch after batch, on random messages and settings."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, Json, Memory, Route, body
from penstock.envelope import AT, DEAD, ERROR, ID
from penstock.kernel.state.resequencing import Resequencing
from penstock.kernel.state.store import Bucket
from penstock.patterns.key import FLUSH
from penstock.reference.run import run_batches
from tests.kernel.state.batches import CARRIED, FATES, FILTERED, HERE, VALUE, Bench, Body

BODY = st.fixed_dictionaries({"k": st.sampled_from(["a", "b"]), "v": st.integers(0, 12), "done": st.just(False)})
BATCHES = st.lists(st.tuples(st.integers(1, 6), st.lists(BODY, max_size=12)), min_size=1, max_size=5)
COMMON = {
    "timeout": st.none() | st.integers(1, 8), "duplicate": st.sampled_from(["dead", "filter"]),
    "on_stop": st.sampled_from([None, "flush", "discard", "hold"]),
}  # fmt: skip
SIZED = st.fixed_dictionaries(COMMON | {"size": st.integers(1, 4)})
WINDOWED = st.fixed_dictionaries(
    COMMON
    | {"window": st.integers(1, 4), "first": st.none() | st.integers(0, 3), "keep": st.none() | st.integers(1, 8)}
    | {"late": st.sampled_from(["dead", "filter", "pass"])}
)
POLICIES = st.tuples(SIZED | WINDOWED, st.sampled_from(["flush", "discard"])).map(
    lambda pair: pair[0] | {"on_timeout": pair[1] if pair[0]["timeout"] else "flush"}
)


@settings(max_examples=300)
@given(BATCHES, POLICIES)
def test_the_algorithm_agrees_with_the_reference(
    tmp_path_factory, steps: list[tuple[int, list[Body]]], chosen: dict[str, Any]
) -> None:
    clock, batches = 0, []
    for wait, bodies in steps:
        clock += wait
        batches.append((float(clock), bodies))
    route = Route("r", Memory(format=Json("k STRING, v BIGINT, done BOOLEAN"))).resequence(
        body.v, by=body.k, name="step", **chosen
    )
    app = App("state", route.to("out"), sinks={"out": Memory()}, dead_letters=Memory())
    expected = run_batches(app.plan, batches)

    bench = Bench(
        Resequencing(
            chosen.get("size"), chosen.get("window"), chosen.get("first"), chosen["timeout"],
            chosen.get("late", "dead"), chosen["duplicate"], chosen["on_timeout"], chosen["on_stop"] or FLUSH,
            FATES, CARRIED.append(VALUE), chosen.get("keep"),
        ),
        tmp_path_factory.mktemp("runs"),
    )  # fmt: skip
    for number, (now, bodies) in enumerate(batches):
        bench.batch(now, bodies, stops=number == len(batches) - 1)

    found, wanted = defaultdict(list), defaultdict(list)
    for row in bench.out:
        if row[AT] == HERE:
            found[row["s0"]["k"]].append(row[ID])
    late = chosen.get("late") == "pass"
    for message in expected.channels["out"]:
        wanted[(message.fields or {})["k"]].append(message.id)
    if late:  # what passes out of order has no place among the others
        assert {key: sorted(ids) for key, ids in found.items()} == {key: sorted(ids) for key, ids in wanted.items()}
    else:
        assert found == wanted
    fates = Counter(row[AT] for row in bench.out)
    assert fates[FILTERED] == sum(expected.filtered.values())
    dead = sorted((row[ID], row[ERROR]["reason"]) for row in bench.out if row[AT] == DEAD)
    assert dead == sorted((letter.message.id, letter.reason) for letter in expected.dead)
    assert bench.held == expected.held


def test_a_quiet_key_leaves_nothing_behind(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rule = Resequencing(None, 3, 1, None, "dead", "dead", FLUSH, FLUSH, FATES, CARRIED.append(VALUE), keep=10)
    bench = Bench(rule, tmp_path)

    def keys() -> int:
        return len(Bucket(bench.runs, rule.payload).all_keys())

    bench.batch(0, [{"k": key, "v": number, "done": False} for key, number in (("a", 1), ("b", 1), ("b", 3))])
    bench.batch(9, [])
    assert keys() == 2
    bench.batch(10, [])
    assert (keys(), bench.held) == (1, 1)  # 3 waits for 2
    bench.batch(20, [{"k": "b", "v": 2, "done": False}])
    bench.batch(30, [])
    assert (keys(), bench.held) == (0, 0)

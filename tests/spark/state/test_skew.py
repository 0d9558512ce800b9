"""Many partitions and keys of very different size: every message is in its own group, once and in order."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from penstock import App, Json, Memory, Route, body, collect
from penstock.testing import SPARK, STREAM, run

SIZE = 10


def messages(count: int) -> list[dict[str, int]]:
    """Half of them have one key; a hundred keys share the rest; each comes once more, later."""
    chance = random.Random(7)
    first = [{"n": n, "k": 0 if chance.random() < 0.5 else chance.randrange(1, 101)} for n in range(count)]
    return [*first, *chance.sample(first, count // 5)]


@pytest.mark.parametrize("engine", [SPARK, STREAM])
def test_no_message_is_lost_doubled_or_in_another_group(engine: str, spark: object) -> None:
    given = messages(5_000)
    app = App(
        "skewed",
        Route("r", Memory(format=Json("n BIGINT, k BIGINT")))
        .idempotent(body.n, remember_failed=True)
        .aggregate(collect("all"), by=body.k, size=SIZE)
        .to("out", Memory()),
    )
    result = run(app, given, engine, partitions=7, rows_per_batch=2_500)

    members: dict[int, list[int]] = defaultdict(list)
    for one in given[:5_000]:
        members[one["k"]].append(one["n"])
    if engine == STREAM:  # what is not complete waits; the end of a batch run completes it
        members = {k: numbers[: len(numbers) // SIZE * SIZE] for k, numbers in members.items()}
    found: dict[int, list[int]] = defaultdict(list)
    for group in result.bodies("out"):
        keys = {one["k"] for one in group["all"]}
        assert len(keys) == 1
        found[keys.pop()] += [one["n"] for one in group["all"]]
    assert {k: sorted(numbers) for k, numbers in found.items()} == members
    held = 5_000 - sum(map(len, members.values()))
    assert (result.summary.held, result.filtered) == (held, {"r.idempotent": 1_000})

"""Where a message may still die: an idempotent receiver before that place forgets the key of one that does."""

from __future__ import annotations

import pytest

from penstock import App, Json, Memory, Route, body, collect, combine, count_of, fold, mean_of, min_of, sum_of
from penstock.plan.failing import decides_later
from tests.agreement.test_state import longest

START = Route("r", Memory((), Json("k STRING, n BIGINT"))).idempotent(body.n)
GROUPED = {"by": body.k, "size": 2, "invalid": "filter"}
FAILING = {
    "a key that is missing": START.aggregate(collect("all"), by=body.k, size=2),
    "a group that is closed": START.aggregate(collect("all"), closed="dead", closed_for="1 hour", **GROUPED),
    "a sum that is too large": START.aggregate(fold(t=sum_of(body.n)), **GROUPED),
    "a mean that is too large": START.aggregate(fold(t=mean_of(body.n)), **GROUPED),
    "a function of a group": START.aggregate(combine(longest, "most BIGINT, rows BIGINT"), **GROUPED),
    "late": START.resequence(body.n, by=body.k, window=2, invalid="filter", late="dead", duplicate="filter"),
    "there before": START.resequence(body.n, by=body.k, window=2, invalid="filter", late="pass", duplicate="dead"),
}
SAFE = {
    "nothing": START,
    "a group": START.aggregate(collect("all"), **GROUPED),
    "a fold": START.aggregate(fold(n=count_of(), low=min_of(body.n)), **GROUPED),
    "a sequence": START.resequence(body.n, by=body.k, window=2, invalid="filter", late="pass", duplicate="filter"),
}


@pytest.mark.parametrize("name", [*FAILING, *SAFE])
def test_a_receiver_waits_for_the_fate_of_the_first_where_it_may_fail(name: str) -> None:
    plan = App("a", (FAILING | SAFE)[name].to("out", Memory())).plan
    assert decides_later(plan, plan.stages()[0]) == (name in FAILING)

"""Dates, instants, exact numbers and bytes: the block engine does what the reference does, byte for byte."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock import App, Json, Memory, Route, body, collect, now
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.nodes import Expr, Meta
from penstock.expr.types import NULL, type_of
from penstock.expr.variant import bind
from penstock.expr.vectorized import evaluate_batch
from penstock.formats.arrow import arrow_type
from penstock.schema import fits, schema
from penstock.testing import KERNEL, REFERENCE, run
from tests.agreement.test_agreement import describe
from tests.agreement.test_kernel import MANY, assert_identical
from tests.agreement.values import (
    MESSAGES,
    SCHEMA,
    WHOLE,
    amounts,
    apps,
    conditions,
    days,
    dumped,
    instants,
    texts,
    typed,
)


@MANY
@given(apps(), MESSAGES)
def test_the_kernel_computes_with_values_as_the_reference_does(app: App, messages: list[bytes]) -> None:
    describe(app, messages)
    assert_identical(run(app, messages, REFERENCE), run(app, messages, KERNEL))


EXPRESSIONS = typed(st.one_of(amounts(), days(), instants(), texts(), conditions())).filter(
    lambda tree: not any(isinstance(part, Meta) for part in tree.walk())
)


@MANY
@given(EXPRESSIONS, st.lists(WHOLE.map(dumped), min_size=1, max_size=8), st.booleans())
def test_columns_have_the_values_of_one_message_after_the_other(tree: Expr, bodies: list[bytes], strict: bool) -> None:
    fields, kind = schema(SCHEMA), type_of(tree, schema(SCHEMA))
    bound, format = bind(tree, fields), Json(fields)
    decoded: list[Any] = [format.decode(body, fields) for body in bodies]
    expected = [evaluate(bound, Scope(values, strict=strict)) for values in decoded]
    assert all(fits(value, kind) for value in expected if kind != NULL)
    table, _ = format.decode_batch(pa.array(bodies), fields)
    wanted = pa.null() if kind == NULL else arrow_type(kind)
    assert evaluate_batch(bound, table, wanted, strict).to_pylist() == expected


def test_now_is_the_clock_of_the_batch_that_computes() -> None:
    late = Route("in", Memory((), Json("k STRING"))).enrich({"came": now()})
    late = late.aggregate(collect("times", of="came"), by="k", size=2)
    late = late.enrich({"left": now(), "waited": now() - body.times[0]})
    app = App("clock", late.to("out"), sinks={"out": Memory()}, dead_letters=Memory())
    given, timing = [{"k": "a"}, {"k": "b"}, {"k": "a"}], {"batches": [2, 1], "clock": [10.0, 70.5]}
    expected = run(app, given, REFERENCE, **timing)
    assert expected.bodies("out") == [
        {"times": ["1970-01-01T00:00:10Z", "1970-01-01T00:01:10.500000Z"], "left": "1970-01-01T00:01:10.500000Z",
         "waited": 60.5},
        {"times": ["1970-01-01T00:00:10Z"], "left": "1970-01-01T00:01:10.500000Z", "waited": 60.5},
    ]  # fmt: skip
    assert_identical(expected, run(app, given, KERNEL, **timing))

"""Which steps try a message again themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock import Route, body, collect, combine, function, header
from tests.patterns.apps import app, start

called = function(abs, body.id, returns="BIGINT")


def same(table: pa.Table) -> pa.Table:
    return table


def waiting(route: Route, **policy: Any) -> list[str]:
    """The steps of a route at which messages wait for a later batch."""
    (planned,) = app(route.on_error(**policy).to("x")).plan.routes
    steps = [stage.node.name for stage in planned.stages if stage.at_once is None]
    assert planned.waits == bool(steps)
    return steps


@pytest.mark.parametrize(
    "route",
    [
        start().enrich({"id": called}).filter(called > 3),
        start().script(same, "id BIGINT").script(same, "id BIGINT", name="again"),
        start().filter(body.id > 0, missing="dead"),
        start().enrich({"before": header.redelivered, "id": called}),
        start().enrich({"id": function(abs, header.redelivered, returns="BIGINT")}),
        start().idempotent(body.id).enrich({"id": called}).aggregate(collect("all"), by=called, size=2),
    ],
)
def test_without_a_delay_a_step_tries_again_itself(route: Route) -> None:
    assert waiting(route, delay=0) == []
    assert len(waiting(route, delay="1 s")) == len(route.steps) + 1


@pytest.mark.parametrize(
    ("route", "steps"),
    [
        (start().keep("id").aggregate(combine(same, "id BIGINT"), by=body.id, size=2), ["aggregate"]),
        (start().filter(called > 3, missing="dead"), ["filter"]),
        (start().filter(header.redelivered == "1", missing="dead").enrich({"id": called}), ["filter"]),
        (start().enrich({"a": function(len, header.redelivered, returns="BIGINT"), "id": called}), ["enrich"]),
    ],
)
def test_a_step_waits_if_the_next_try_may_find_something_else(route: Route, steps: list[str]) -> None:
    assert waiting(route, delay=0) == steps


@pytest.mark.parametrize(
    ("route", "steps"),
    [
        (start().filter(body.id > 0).enrich({"id": body.id + 1}).enrich({"id": called}, name="call"), []),
        (start().enrich({"id": called}).enrich({"id": called}, name="call"), ["call"]),
        (start().enrich({"name": header.redelivered}).enrich({"id": called}, name="call"), ["call"]),
        (start().idempotent(body.id).enrich({"id": called}), ["enrich"]),
    ],
)
def test_an_original_message_waits_if_a_step_before_may_do_something_else(route: Route, steps: list[str]) -> None:
    assert waiting(route, delay=0, message="original") == steps

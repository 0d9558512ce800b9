"""What stops the later parts and copies, and what must not come after it."""

from __future__ import annotations

import pytest

from penstock import App, Files, Json, Memory, Route, Void, body, collect
from penstock.errors import BadRoute
from penstock.patterns.split import Split
from penstock.plan.stopping import stopping_stages

LINES = Json("id BIGINT, lines ARRAY<STRUCT<n: BIGINT>>")


def split(**settings: object) -> Route:
    return Route("in", Memory(format=LINES)).split(body.lines, **settings)  # type: ignore[arg-type]


def copies() -> Route:
    return Route("in", Memory(format=LINES)).multicast("a", "b", stop_on_exception=True)


def beside() -> Route:
    return Route("beside", Files("in", LINES)).split(body.lines, error_budget=1).to("y", Void())


def said(*routes: Route) -> str:
    with pytest.raises(BadRoute) as caught:
        _ = App("app", *routes).plan
    return "\n".join(line for line in str(caught.value).splitlines() if not line.startswith("  at "))


def test_a_step_with_state_cannot_come_after() -> None:
    later = split(error_budget=2).aggregate(collect("all"), by=body.n, size=2).to("x", Void())
    assert said(later) == (
        "BadRoute: route 'in', step 'split': error_budget may stop messages on their way, and step 'aggregate' "
        "of route 'in' keeps state, which cannot be undone\n"
        "  fix  remember before that step, or in an app that reads what this one writes; or leave out error_budget"
    )
    for wrong in (
        [copies(), Route("a", "a").to("c"), Route("c", "c").idempotent().to("x", Void()), Route("b", "b").to("x")],
        [copies(), Route("a", "a").to("x", Void()), Route("b", "b").resequence(body.id, window=3).to("x")],
    ):
        assert "stop_on_exception may stop messages on their way, and step" in said(*wrong)


def test_a_message_cannot_be_tried_again_after() -> None:
    assert said(split(error_budget=0.5).filter(body.n > 0, missing="dead").on_error().to("x", Void())) == (
        "BadRoute: route 'in', step 'split': error_budget may stop messages on their way, and route 'in' tries "
        "messages again, which cannot be undone\n"
        "  fix  put on_error on a route before that step; or leave out error_budget"
    )
    branches = Route("a", "a").to("x", Void()), Route("b", "b").on_error().to("x")
    assert "stop_on_exception may stop messages on their way, and route 'b' tries" in said(copies(), *branches)


def test_state_before_it_and_beside_it_is_allowed() -> None:
    first = Route("in", Memory(format=LINES)).idempotent(body.id).on_error().to("on")
    second = Route("on", "on").split(body.lines, error_budget=0).filter(body.n > 0, missing="dead").to("x", Void())
    other = Route("other", Memory(format=LINES)).aggregate(collect("all"), by=body.id, size=2).to("y", Void())
    plan = App("app", first, second, other).plan
    assert [stage.title for stage in stopping_stages(plan)] == ["on.split"]


def test_where_nothing_can_fail_nothing_is_stopped() -> None:
    plan = App("app", split(error_budget=0).filter(body.n > 0).to("x", Void())).plan
    assert isinstance(plan.routes[0].stages[0].node, Split)
    assert stopping_stages(plan) == ()
    named = Route("in", Memory(format=Json("to STRING"))).recipients(body.to, known=["a"], stop_on_exception=True)
    assert len(stopping_stages(App("app", named, sinks={"a": Void()}).plan)) == 1


def test_the_order_of_the_source_is_not_kept() -> None:
    route = Route("in", Files("in", LINES), delivery="exactly once in order").split(body.lines, error_budget=1)
    assert "step 'split' of route 'in' does not keep the order" in said(route.to("x", Files("out")))
    first = Route("in", Files("in", LINES), delivery="exactly once in order")
    sequenced = first.resequence(body.id, window=9, timeout="1 s").to("x", Files("out"))
    assert "does not keep the order" in said(beside(), sequenced)

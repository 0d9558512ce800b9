"""Patterns made of others: scatter-gather, composed message processor, and the pipelines of HW-EIP 6.1."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import (
    App,
    Json,
    Memory,
    Route,
    body,
    collect,
    composed_processor,
    fold,
    join,
    min_of,
    scatter_gather,
    union,
)
from penstock.errors import PenstockError
from penstock.testing import Result, run

ORDER = "id BIGINT, lines ARRAY<STRUCT<sku: STRING, n: BIGINT>>"


def source(fields: str = ORDER) -> Memory:
    return Memory(format=Json(fields))


def result_of(routes: tuple[Route, ...], messages: list[Any], **how: Any) -> Result:
    result = run(App("composed", *routes, sinks={"x": Memory()}, dead_letters=Memory()), messages, **how)
    assert result.summary.conserved
    return result


def test_scatter_gather_takes_the_best_of_all_answers() -> None:
    routes = scatter_gather(
        "quotes",
        source("item STRING, price DOUBLE"),
        {
            "a": lambda route: route.enrich({"quote": body.price * 3}),
            "b": lambda route: route.enrich({"quote": body.price + 1}),
            "c": lambda route: route.filter(body.price > 1).enrich({"quote": body.price * 2}),
        },
        fold(best=min_of(body.quote)),
        to="x",
    )
    result = result_of(routes, [{"item": "i", "price": 5.0}, {"item": "j", "price": 1.0}])
    assert result.bodies("x") == [{"best": 6.0}, {"best": 2.0}]
    assert [message.headers["completed-by"] for message in result.channels["x"]] == ["size", "stop"]
    assert [message.headers["group-size"] for message in result.channels["x"]] == ["3", "2"]


def test_answers_unite_in_one_message() -> None:
    routes = scatter_gather(
        "facts",
        source("id BIGINT"),
        {"left": lambda route: route.enrich({"l": "left"}), "right": lambda route: route.enrich({"r": "right"})},
        union(),
        to="x",
        by=body.id,
    )
    assert result_of(routes, [{"id": 1}]).bodies("x") == [{"id": 1, "l": "left", "r": "right"}]


def test_a_late_answer_is_not_waited_for_longer_than_declared() -> None:
    routes = scatter_gather(
        "ask", source("id BIGINT"), {"a": lambda route: route, "b": lambda route: route.filter(body.id < 0)}, union(),
        to="x", timeout="5 s",
    )  # fmt: skip
    result = result_of(routes, [{"id": 1}], batches=[1, 0], clock=[0, 5])
    assert [message.headers["completed-by"] for message in result.channels["x"]] == ["timeout"]


def test_a_composed_message_processor_treats_each_part_by_its_kind() -> None:
    routes = composed_processor(
        "orders",
        source(),
        body.lines,
        {"books": (body.line.sku == "book", lambda route: route.enrich({"from": "library"}))},
        ("rest", lambda route: route.enrich({"from": "stock"})),
        collect("lines", head=["id"]),
        to="x",
        into="line",
        head=["id"],
    )
    order = {"id": 7, "lines": [{"sku": "pen", "n": 2}, {"sku": "book", "n": 1}, {"sku": "cup", "n": 4}]}
    result = result_of(routes, [order, {"id": 8, "lines": [{"sku": "book"}]}])
    assert [[line["from"] for line in found["lines"]] for found in result.bodies("x")] == [
        ["stock", "library", "stock"], ["library"],
    ]  # fmt: skip
    assert [message.id for message in result.channels["x"]] == ["orders/0/0", "orders/0/1"]
    assert result.summary.copied == 0


@pytest.mark.parametrize("pairs", [1, 3, 4])
def test_a_load_balancer_spreads_splitters_with_aggregators_that_a_join_router_unites(pairs: int) -> None:
    names = [str(number) for number in range(pairs)]
    start = Route("in", source())
    routes = [
        start.balance(*names) if pairs > 1 else start.to("0"),
        *(
            Route(f"pair-{name}", name)
            .split(body.lines, into="line", head=["id"])
            .aggregate(collect("lines", of="line", head=["id"]), size="parts")
            .to(f"done-{name}")
            for name in names
        ),
        Route("out", join(*(f"done-{name}" for name in names)) if pairs > 1 else "done-0").to("x"),
    ]
    orders = [{"id": n, "lines": [{"sku": "a", "n": m} for m in range(n % 4 + 1)]} for n in range(20)]
    assert result_of(tuple(routes), orders).bodies("x") == orders


def test_what_does_not_compose_is_refused() -> None:
    with pytest.raises(PenstockError, match="needs branches"):
        scatter_gather("s", source(), {}, union(), to="x")
    with pytest.raises(PenstockError, match="the steps of channel 'a' are None"):
        scatter_gather("s", source(), {"a": lambda route: None}, union(), to="x")  # type: ignore[arg-type, return-value]
    with pytest.raises(PenstockError, match="has channel 'a' twice"):
        composed_processor("c", source(), body.lines, {"a": (body.n > 1, lambda r: r)}, ("a", lambda r: r),
                           union(), to="x")  # fmt: skip

"""Who needs the bytes of a message again."""

from __future__ import annotations

import pytest

from penstock import App, Csv, Files, Json, Memory, Parquet, Route, body, collect, function
from penstock.endpoints.base import Sink
from penstock.testing import on_lists, run

ORDER = Json("id BIGINT, who STRING")


def start() -> Route:
    return Route("r", Files("orders.jsonl", ORDER))


def kept(route: Route, sink: Sink | None = None) -> bool:
    return App("a", route.to("out", sink or Files("out"))).plan.entries[0].original


@pytest.mark.parametrize(
    ("route", "sink", "needed"),
    [
        (start(), None, True),
        (start(), Parquet("out"), False),
        (start(), Files("out", Csv("id BIGINT, who STRING")), False),
        (start().translate({"id": body.id}), None, False),
        (start().translate({"id": body.id}).filter(body.id > 1), None, False),
        (start().translate({"id": body.id}).filter(body.id > 1, missing="dead"), None, True),
        (start().translate({"id": function(len, body.who, returns="BIGINT")}), None, True),
        (start().translate({"id": body.id}).aggregate(collect("ids"), by=body.id, size=2), None, True),
    ],
)
def test_bytes_go_on_to_sinks_letters_and_later_batches(route: Route, sink: Sink | None, needed: bool) -> None:
    assert kept(route, sink) is needed


def test_a_tapped_body_is_needed() -> None:
    route = start().tap("seen").translate({"id": body.id}).to("out")
    assert App("a", route, sinks={"seen": Files("seen"), "out": Files("out")}).plan.entries[0].original


def test_a_body_that_cannot_be_decoded_keeps_its_bytes() -> None:
    app = on_lists(App("a", start().translate({"id": body.id}).to("out", Memory())), {"r": [b"broken"]})
    assert not app.plan.entries[0].original
    assert [letter.message.raw for letter in run(app, [b"broken"], "spark").dead] == [b"broken"]
